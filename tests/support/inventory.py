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
from importlib import import_module
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from compactor.model import SourceObject
from tests.support.memory_store import MemoryStore

BUCKET = "inventories"
PLACE = "daily/source/all/"
BEGUN = "2027-01-15T01-00Z"
URI = f"s3://{BUCKET}/{PLACE}{BEGUN}/manifest.json"
CURRENT = ("Bucket", "Key", "Size", "LastModifiedDate", "ETag", "StorageClass")
VERSIONS = ("Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", *CURRENT[2:])
ALL = (*CURRENT, "IsMultipartUploaded", "ReplicationStatus", "EncryptionStatus")


ENDS = {"CSV": "csv.gz", "ORC": "orc", "Parquet": "parquet"}
NAMES = {
    "Bucket": "bucket",
    "Key": "key",
    "VersionId": "version_id",
    "IsLatest": "is_latest",
    "IsDeleteMarker": "is_delete_marker",
    "Size": "size",
    "LastModifiedDate": "last_modified_date",
    "ETag": "e_tag",
    "StorageClass": "storage_class",
    "IsMultipartUploaded": "is_multipart_uploaded",
    "ReplicationStatus": "replication_status",
    "EncryptionStatus": "encryption_status",
}
TYPES = {
    "IsLatest": "boolean",
    "IsDeleteMarker": "boolean",
    "IsMultipartUploaded": "boolean",
    "Size": "bigint",
    "LastModifiedDate": "timestamp",
}


def parquet_type(name: str, kind: str) -> str:
    """A column's declaration in Parquet, by its type in ORC."""
    return {
        "string": f"binary {name} (UTF8)",
        "boolean": f"boolean {name}",
        "bigint": f"int64 {name}",
        "timestamp": f"int64 {name} (TIMESTAMP_MILLIS)",
    }[kind]


def _column(arrow: Any, name: str, rows: Sequence[dict[str, str]]) -> Any:
    """Values of a column as S3 types them; keys are not encoded here."""
    texts = [row.get(name, "") for row in rows]
    kind = TYPES.get(name, "string")
    if name == "Key":
        return arrow.array([unquote_plus(one) for one in texts])
    if kind == "boolean":
        return arrow.array([one == "true" for one in texts])
    if kind == "bigint":
        return arrow.array([int(one) if one else None for one in texts], arrow.int64())
    if kind == "timestamp":
        moments = [datetime.fromisoformat(one) for one in texts]
        return arrow.array(moments, arrow.timestamp("ms", tz="UTC"))
    return arrow.array([one or None for one in texts], arrow.string())


@dataclass
class Inventory:
    """What is to be delivered; a test changes what S3 would not do.

    Attributes:
        rows: by file; each a mapping of column to text.
        told: fields of manifest.json instead of the right ones.
    """

    created_at: float
    rows: list[list[dict[str, str]]]
    columns: Sequence[str] = CURRENT
    file_format: str = "CSV"
    told: dict[str, Any] = field(default_factory=dict)

    def deliver(self, store: MemoryStore, begun: str = BEGUN) -> None:
        """Put files, manifest and checksum where S3 does."""
        for key, body in self.objects(begun):
            store.seed(BUCKET, key, body)

    def objects(self, begun: str = BEGUN) -> Iterator[tuple[str, bytes]]:
        """What S3 delivers, by key."""
        files = []
        for number, rows in enumerate(self.rows):
            body = self._file(rows)
            key = f"{PLACE}data/{number:08d}-{begun}.{ENDS[self.file_format]}"
            yield key, body
            files.append({"key": key, "size": len(body), "MD5checksum": md5(body)})
        manifest = {
            "sourceBucket": "source",
            "destinationBucket": f"arn:aws:s3:::{BUCKET}",
            "version": "2016-11-30",
            "creationTimestamp": str(int(self.created_at * 1000)),
            "fileFormat": self.file_format,
            "fileSchema": self._schema(),
            "files": files,
            **self.told,
        }
        body = json.dumps(manifest, indent=2).encode()
        yield f"{PLACE}{begun}/manifest.json", body
        yield f"{PLACE}{begun}/manifest.checksum", md5(body).encode()

    def _schema(self) -> str:
        """As the manifests in the guide have it."""
        if self.file_format == "CSV":
            return ", ".join(self.columns)
        names = [(NAMES[name], TYPES.get(name, "string")) for name in self.columns]
        if self.file_format == "ORC":
            return f"struct<{','.join(':'.join(one) for one in names)}>"
        required = ("bucket", "key")
        lines = [
            f"  {'required' if name in required else 'optional'} {parquet_type(name, kind)};"
            for name, kind in names
        ]
        return "message s3.inventory {" + "".join(lines) + "}"

    def _file(self, rows: Sequence[dict[str, str]]) -> bytes:
        if self.file_format == "CSV":
            # The same rows are the same file, whatever the second.
            return gzip.compress(self._csv(rows), mtime=0)
        arrow = import_module("pyarrow")
        table = arrow.table({NAMES[name]: _column(arrow, name, rows) for name in self.columns})
        sink = io.BytesIO()
        if self.file_format == "ORC":
            import_module("pyarrow.orc").write_table(table, sink, stripe_size=64)
        else:
            import_module("pyarrow.parquet").write_table(table, sink, row_group_size=2)
        return sink.getvalue()

    def _csv(self, rows: Iterable[dict[str, str]]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row in rows:
            writer.writerow([row.get(name, "") for name in self.columns])
        return text.getvalue().encode()


def inventory_of(
    sources: Sequence[SourceObject], created_at: float, *, files: int = 3, **given: Any
) -> Inventory:
    """An inventory of these objects, dealt out to files so that no file is in order."""
    rows = [row_of(one) for one in sorted(sources, key=lambda one: md5(one.key.encode()))]
    return Inventory(created_at, [rows[number::files] for number in range(files)], **given)


def row_of(source: SourceObject, **given: str) -> dict[str, str]:
    """The row of an object's current version."""
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
