"""Reads the manifest of an S3 Inventory: manifest.json, checked by manifest.checksum.

Source: Amazon S3 User Guide, "Locating your inventory list" (storage-inventory-location) and
"Amazon S3 Inventory list" (storage-inventory).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compactor.errors import IntegrityError, InvalidInput, ObjectMissing
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri

FIELD = "listing"
_NAME = "manifest.json"
_CHECKSUM_NAME = "manifest.checksum"
_ARN = "arn:"
# Below its configuration's name, an inventory is named by the time at which it was begun.
_BEGUN = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}Z/")
# Fields that are optional in an inventory's configuration, but required here. Bucket and Key are
# always included.
_REQUIRED = ("Size", "LastModifiedDate", "ETag")
# A column name in fileSchema.
_NAME_IN_SCHEMA = re.compile(r"[^\s,]+")
_ACCEPTED = "the URI of the manifest.json of an S3 Inventory"


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """One file of an inventory, in the destination bucket."""

    bucket: str
    key: str
    md5: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of an inventory.

    Attributes:
        uri: URI of manifest.json.
        md5: MD5 of manifest.json, in hexadecimal; identifies the inventory.
        source_bucket: the bucket whose objects are listed.
        created_at: when S3 began to list, UNIX seconds.
        columns: names of the columns of each row, in order.
        files: the files with the rows.
    """

    uri: str
    md5: str
    source_bucket: str
    created_at: float
    columns: tuple[str, ...]
    files: tuple[InventoryFile, ...]


def manifest_uri(uri: str, store: ObjectStore) -> str:
    """Return the URI of a manifest: ``uri`` itself, or the newest manifest below it.

    Args:
        uri: URI of a manifest.json; or ``s3://BUCKET/…/CONFIGURATION/``, where S3 delivers.
        store: where it is.

    Raises:
        InvalidInput: nothing was delivered there.
    """
    if uri.endswith(_NAME):
        return uri
    place = S3Uri.parse(FIELD, uri)
    pages = store.list_level(place.bucket, place.prefix)
    levels = (level for page in pages for level in page.prefixes)
    delivered = sorted(one for one in levels if _BEGUN.fullmatch(one, len(place.prefix)))
    for level in reversed(delivered):
        # An inventory that is being delivered may have no manifest yet.
        if store.head(place.bucket, level + _CHECKSUM_NAME) is not None:
            return f"s3://{place.bucket}/{level}{_NAME}"
    accepted = "a prefix below which S3 has delivered an inventory, or the URI of its manifest.json"
    raise InvalidInput(FIELD, uri, accepted)


def configuration_of(uri: str) -> str:
    """Return the prefix below which S3 delivers manifests and files of a configuration.

    Args:
        uri: that prefix itself, or the URI of a manifest.json below it.
    """
    if not uri.endswith(_NAME):
        return uri
    levels = uri.removesuffix(_NAME).rstrip("/").split("/")
    return "/".join(levels[:-1] if _BEGUN.fullmatch(levels[-1] + "/") else levels) + "/"


def read_manifest(uri: str, store: ObjectStore) -> Manifest:
    """Read and check the manifest of an inventory, without reading its files.

    Args:
        uri: ``s3://BUCKET/…/manifest.json``.
        store: where it is.

    Raises:
        InvalidInput: there is no manifest, or the inventory has an unsupported format or lacks a
            required field.
        IntegrityError: the manifest does not match manifest.checksum.
    """
    place = S3Uri.parse(FIELD, uri.removesuffix(_NAME))
    try:
        body = store.get(place.bucket, place.prefix + _NAME)
        said = store.get(place.bucket, place.prefix + _CHECKSUM_NAME).decode("ascii", "replace")
    except ObjectMissing as error:
        accepted = f"{_ACCEPTED}, with its {_CHECKSUM_NAME} beside it ({error} is missing)"
        raise InvalidInput(FIELD, uri, accepted) from None
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    if said.strip() != md5:
        raise IntegrityError(f"{uri} has the MD5 {md5}, and {_CHECKSUM_NAME} says {said.strip()!r}")
    try:
        return _manifest(uri, md5, json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(FIELD, uri, f"{_ACCEPTED} ({error!r})") from error


def _manifest(uri: str, md5: str, found: Mapping[str, Any]) -> Manifest:
    columns = _columns(uri, found["fileFormat"], found["fileSchema"])
    bucket = str(found["destinationBucket"])
    if bucket.startswith(_ARN):
        bucket = bucket.rpartition(":")[2]
    return Manifest(
        uri=uri,
        md5=md5,
        source_bucket=str(found["sourceBucket"]),
        # In milliseconds, as a string.
        created_at=int(found["creationTimestamp"]) / 1000,
        columns=tuple(columns),
        files=tuple(
            InventoryFile(bucket, str(one["key"]), str(one["MD5checksum"]))
            for one in found["files"]
        ),
    )


def _columns(uri: str, file_format: str, schema: str) -> Sequence[str]:
    if file_format != "CSV":
        raise InvalidInput(FIELD, uri, f"an inventory in CSV; this one is in {file_format}")
    columns = _NAME_IN_SCHEMA.findall(schema)
    missing = [name for name in ("Key", *_REQUIRED) if name not in columns]
    if missing:
        accepted = f"an inventory with the fields {', '.join(_REQUIRED)}: it has no {missing[0]}"
        raise InvalidInput(FIELD, uri, accepted)
    versions = [name for name in ("VersionId", "IsLatest", "IsDeleteMarker") if name in columns]
    if versions and len(versions) < 3:
        raise InvalidInput(FIELD, uri, "an inventory with IsLatest and IsDeleteMarker, or neither")
    return columns
