"""S3 Inventories as the Amazon S3 User Guide describes them.

"Amazon S3 Inventory list" (storage-inventory): CSV in gzip without a header, all fields quoted,
keys URL-encoded. "Locating your inventory list" (storage-inventory-location): manifest.json,
manifest.checksum with the MD5 of it, files below ``data/``.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

from compactor.model import SourceObject
from tests.support.memory_store import MemoryStore

BUCKET = "inventories"
PLACE = "daily/source/all/"
BEGUN = "2027-01-15T01-00Z"
URI = f"s3://{BUCKET}/{PLACE}{BEGUN}/manifest.json"
CURRENT = ("Bucket", "Key", "Size", "LastModifiedDate", "ETag", "StorageClass")
VERSIONS = ("Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", *CURRENT[2:])
ALL = (*CURRENT, "IsMultipartUploaded", "ReplicationStatus", "EncryptionStatus")


@dataclass
class Inventory:
    """An inventory to deliver; tests may change it to what S3 would not deliver.

    Attributes:
        rows: the rows of each file, as column -> text.
        told: fields of manifest.json that replace the right ones.
    """

    created_at: float
    rows: list[list[dict[str, str]]]
    columns: Sequence[str] = CURRENT
    told: dict[str, Any] = field(default_factory=dict)

    def deliver(self, store: MemoryStore, begun: str = BEGUN) -> None:
        """Put files, manifest and checksum where S3 delivers them."""
        for key, body in self.objects(begun):
            store.seed(BUCKET, key, body)

    def objects(self, begun: str = BEGUN) -> Iterator[tuple[str, bytes]]:
        """Yield key and body of what S3 delivers."""
        files = []
        for number, rows in enumerate(self.rows):
            # Without a time stamp, so that the same rows result in the same file.
            body = gzip.compress(self._csv(rows), mtime=0)
            key = f"{PLACE}data/{number:08d}-{begun}.csv.gz"
            yield key, body
            files.append({"key": key, "size": len(body), "MD5checksum": md5(body)})
        manifest = {
            "sourceBucket": "source",
            "destinationBucket": f"arn:aws:s3:::{BUCKET}",
            "version": "2016-11-30",
            "creationTimestamp": str(int(self.created_at * 1000)),
            "fileFormat": "CSV",
            "fileSchema": ", ".join(self.columns),
            "files": files,
            **self.told,
        }
        body = json.dumps(manifest, indent=2).encode()
        yield f"{PLACE}{begun}/manifest.json", body
        yield f"{PLACE}{begun}/manifest.checksum", md5(body).encode()

    def _csv(self, rows: Iterable[dict[str, str]]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row in rows:
            writer.writerow([row.get(name, "") for name in self.columns])
        return text.getvalue().encode()


def inventory_of(
    sources: Sequence[SourceObject], created_at: float, *, files: int = 3, **given: Any
) -> Inventory:
    """Return an inventory of these objects, distributed so that no file is sorted."""
    rows = [row_of(one) for one in sorted(sources, key=lambda one: md5(one.key.encode()))]
    return Inventory(created_at, [rows[number::files] for number in range(files)], **given)


def row_of(source: SourceObject, **given: str) -> dict[str, str]:
    """Return the row of an object's current version."""
    moment = datetime.fromtimestamp(int(source.last_modified), UTC)
    return {
        "Bucket": source.bucket,
        "Key": quote_plus(source.key, safe="/"),
        "VersionId": "",
        "IsLatest": "true",
        "IsDeleteMarker": "false",
        "Size": str(source.size),
        "LastModifiedDate": moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "ETag": source.etag,
        "StorageClass": source.storage_class,
        "EncryptionStatus": "SSE-S3",
        **given,
    }


def md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
