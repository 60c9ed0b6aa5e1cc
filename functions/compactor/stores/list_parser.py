"""A ListObjectsV2 page read by pattern instead of by botocore's model.

botocore takes 70-96 ms of CPU for a page of 1,000 keys, almost all of it in turning XML into
dictionaries; this takes 4-6 ms. It is hooked in before botocore parses, so that signing,
retries, proxies and errors stay botocore's.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from compactor.errors import TransientStoreError
from compactor.model import SourceObject

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

PAGE = "CompactorPage"
_CONTENTS = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
# The order in which S3 and most others write them; the general way serves the rest.
_USUAL = re.compile(
    r"<Contents><Key>([^<]*)</Key><LastModified>([^<]*)</LastModified><ETag>([^<]*)</ETag>"
    r"(?:<Checksum(?:Algorithm|Type)>[^<]*</Checksum(?:Algorithm|Type)>)*<Size>(\d+)</Size>"
    r"<StorageClass>([^<]*)</StorageClass></Contents>"
)
# The five names of XML and numbers; html.unescape knows others, and changes what C1 controls are.
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#x([0-9A-Fa-f]{1,6})|([a-z]+));")
_QUOTE = "&quot;"
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# NUL, and halves of UTF-16 pairs; what else XML forbids, some servers write nevertheless.
_NO_CHARACTERS = frozenset({0, *range(0xD800, 0xE000)})
_FIELD = re.compile(r"<(Key|ETag|Size|LastModified|StorageClass)>([^<]*)</")
# Told only where it was asked for, and only of objects of archive classes that were restored.
_RESTORED = re.compile(
    r"<IsRestoreInProgress>\s*false\s*</.*?<RestoreExpiryDate>\s*([^<]*?)\s*</",
    re.DOTALL | re.IGNORECASE,
)
_PREFIX = re.compile(r"<CommonPrefixes>\s*<Prefix>([^<]*)</Prefix>")
_TRUNCATED = re.compile(r"<IsTruncated>\s*true\s*<", re.IGNORECASE)
_TOKEN = re.compile(r"<NextContinuationToken>([^<]*)<")
_URL_ENCODED = re.compile(r"<EncodingType>\s*url\s*<", re.IGNORECASE)
# What a proxy answers with status 200 may be anything, and is no empty listing.
_LISTING = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<ListBucketResult[\s>]")
# What botocore is left with: valid, and empty.
_NOTHING = b"<ListBucketResult></ListBucketResult>"


class ListedPage:
    """What one page of a listing says.

    Attributes:
        token: continuation token; empty on the last page.
        prefixes: common prefixes, of a delimited listing.

    Raises:
        ValueError: the text is no listing that S3 could have written.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._decode = unquote_plus if _URL_ENCODED.search(text) else _same
        token = _TOKEN.search(text) if _TRUNCATED.search(text) else None
        self.token = _unescaped(token[1]) if token else ""
        self.prefixes = tuple(self._name(raw) for raw in _PREFIX.findall(text))

    def objects(self, bucket: str) -> list[SourceObject]:
        """The objects of the page, in the order listed.

        Raises:
            TransientStoreError: an entry cannot be read, which no store means.
        """
        try:
            return self._objects(bucket)
        except (ValueError, KeyError, OverflowError) as error:
            detail = f"the listing of {bucket} cannot be read: {type(error).__name__} {error}"
            raise TransientStoreError(detail) from error

    def _objects(self, bucket: str) -> list[SourceObject]:
        usual = _USUAL.findall(self._text)
        entries = self._text.count("<Contents")
        if len(usual) == entries:
            return [self._from_fields(bucket, *fields) for fields in usual]
        found = [self._object(bucket, match[1]) for match in _CONTENTS.finditer(self._text)]
        if len(found) != entries:
            raise ValueError("entries of an unknown form")
        return found

    def _object(self, bucket: str, entry: str) -> SourceObject:
        found = dict(_FIELD.findall(entry))
        names = ("Key", "LastModified", "ETag", "Size")
        storage_class = found.get("StorageClass", "STANDARD")
        restored = _RESTORED.search(entry)
        until = datetime.fromisoformat(restored[1]).timestamp() if restored else 0.0
        fields = (found[name] for name in names)
        return self._from_fields(bucket, *fields, storage_class, restored_until=until)

    def _from_fields(self, bucket: str, *fields: str, restored_until: float = 0.0) -> SourceObject:
        key, last_modified, etag, size, storage_class = fields
        return SourceObject(
            bucket,
            self._name(key),
            _etag(etag),
            int(size),
            datetime.fromisoformat(last_modified).timestamp(),
            storage_class,
            restored_until,
        )

    def _name(self, raw: str) -> str:
        return self._decode(_unescaped(raw) if "&" in raw else raw)


def page_of(body: bytes) -> ListedPage | None:
    """The page that an answer is; None for any other answer."""
    if not _LISTING.match(body):
        return None
    try:
        return ListedPage(body.decode())
    except ValueError:
        return None


def install(client: S3Client) -> None:
    """Make the client's listings carry a :class:`ListedPage` under :data:`PAGE`."""
    client.meta.events.register(
        "before-parse.s3.ListObjectsV2", _take_page, unique_id="compactor-list-parser"
    )


def _take_page(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    if response_dict["status_code"] != 200:
        return
    body = response_dict["body"]
    if _LISTING.match(body):
        page = page_of(body)
        if page is not None:
            customized_response_dict[PAGE] = page
        response_dict["body"] = _NOTHING


def _etag(raw: str) -> str:
    """Without its quotes, which S3 writes as entities: taken off by length, once an object."""
    inner = raw[len(_QUOTE) : -len(_QUOTE)]
    if raw.startswith(_QUOTE) and raw.endswith(_QUOTE) and "&" not in inner:
        return inner.strip('"')
    return _unescaped(raw).strip('"') if "&" in raw else raw.strip('"')


def _unescaped(text: str) -> str:
    return _REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name:
        if name not in _NAMED:
            raise ValueError(f"an entity that XML does not know: {reference[0]}")
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    if code in _NO_CHARACTERS:
        raise ValueError(f"no character: {reference[0]}")
    return chr(code)


def _same(name: str) -> str:
    return name
