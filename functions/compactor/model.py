"""The core data types: immutable, and independent of any store or clock.

Times are UNIX seconds (float, UTC). Sizes are bytes. ETags are kept without quotes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import msgspec

_Reason = TypeVar("_Reason", bound=str)
#: The most example keys kept for one skip reason.
SHOWN_EXAMPLES = 5
#: Length of an identity's first part, which is that of the key alone. Two of a billion keys are
#: mistaken for each other with a probability of 4e-7; the object is then left alone.
KEY_DIGEST_BYTES = 10
_ETAG_DIGEST_BYTES = 6
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_MD5 = re.compile(r"[0-9a-f]{32}")


class Format(StrEnum):
    """The format of a source's plain bytes, which decides how sources are joined."""

    JSON_LINES = "json_lines"
    TEXT = "text"
    CSV = "csv"
    TSV = "tsv"
    VPC_FLOW = "vpc_flow"
    CLOUDFRONT = "cloudfront"
    CLOUDTRAIL = "cloudtrail"
    UNDELIMITED_JSON = "undelimited_json"
    JSON_ARRAY = "json_array"
    JSON_LIST = "json_list"
    PARQUET = "parquet"


class Compression(StrEnum):
    """How an object is compressed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class SkipReason(StrEnum):
    """Why a listed object is in no group of a plan. Every skip is counted."""

    COMMITTED = "already_committed"
    TOO_YOUNG = "too_young"
    OPEN_PARTITION = "open_partition"
    TOO_FEW = "too_few_objects"
    EMPTY = "empty"
    DIRECTORY_MARKER = "directory_marker"
    NOT_INCLUDED = "not_included"
    EXCLUDED = "excluded"
    ARCHIVED = "archived_storage_class"
    OWN_STATE = "own_state_or_output"
    HIDDEN = "hidden_from_query_engines"
    TABLE = "part_of_a_table"
    REGISTRY = "part_of_a_registry"
    CLOUDTRAIL_DIGEST = "cloudtrail_digest"
    CLIENT_ENCRYPTED = "client_side_encrypted"
    QUARANTINED = "quarantined"
    UNPARTITIONED = "above_the_partitions"
    DEEPER_LEVEL = "in_a_named_level_below_its_partition"
    OVERWRITTEN = "overwritten"
    GONE = "gone_since_its_event"


class QuarantineReason(StrEnum):
    """Why a source was quarantined."""

    CORRUPT = "corrupt_compression"
    TRUNCATED = "truncated"
    BOMB = "decompression_bomb"
    UNKNOWN_FORMAT = "unknown_format"
    BINARY = "binary"
    ENCODING = "unknown_encoding"
    OPEN_END = "open_end"
    OPEN_QUOTE = "open_quote"
    MALFORMED = "malformed_document"
    TOO_LARGE = "document_too_large"
    UNSUPPORTED_TYPE = "unsupported_type"
    ARCHIVED = "archived_access_tier"
    ACCESS_DENIED = "access_denied"
    ENCRYPTED = "encrypted"
    CLIENT_ENCRYPTED = "client_side_encrypted"


#: The bytes themselves may be fine, so every run tries such a source again.
DENIED_REASONS = frozenset({QuarantineReason.ACCESS_DENIED, QuarantineReason.ENCRYPTED})
PASSING_REASONS = DENIED_REASONS | {QuarantineReason.ARCHIVED}
#: Storage classes whose objects are readable only while there is a restored copy. GLACIER_IR is
#: not among them: it is readable immediately.
ARCHIVED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})


@dataclass(frozen=True, slots=True)
class SourceObject:
    """One listed object, pinned by its ETag.

    Attributes:
        restored_until: when the restored copy of an archived object expires, UNIX seconds; 0 if
            there is no such copy.
    """

    bucket: str
    key: str
    etag: str
    size: int
    last_modified: float
    storage_class: str = "STANDARD"
    restored_until: float = 0.0
    _identity: bytes = field(default=b"", init=False, compare=False, repr=False)

    @property
    def identity(self) -> bytes:
        """Digests of bucket and key (10 bytes) and of the ETag (6), as the commit log has them."""
        if not self._identity:
            name = f"{self.bucket}\0{self.key}".encode("utf-8", "surrogatepass")
            key = hashlib.blake2b(name, digest_size=KEY_DIGEST_BYTES).digest()
            etag = hashlib.blake2b(self.etag.encode(), digest_size=_ETAG_DIGEST_BYTES).digest()
            # Cached, because it is read several times per source.
            object.__setattr__(self, "_identity", key + etag)
        return self._identity


def is_md5(etag: str) -> bool:
    """Return whether an ETag looks like an MD5 sum. Under SSE-KMS and SSE-C it is not one."""
    return _MD5.fullmatch(etag) is not None


@dataclass(frozen=True, slots=True)
class Partition:
    """A prefix whose objects may share an output.

    Attributes:
        bucket: source bucket.
        prefix: source prefix; ends in ``/`` (or is empty for a whole bucket).
        path: the prefix relative to the source root; empty or ending in ``/``. Names the
            partition in the destination and in the commit log.
    """

    bucket: str
    prefix: str
    path: str

    @property
    def id(self) -> str:
        """A name that is safe in any key: a readable tail plus a digest of the path."""
        readable = "".join(c if c.isalnum() or c in "=-_" else "-" for c in self.path.strip("/"))
        digest = hashlib.blake2b(self.path.encode("utf-8", "surrogatepass"), digest_size=8)
        return f"{readable[-80:] or 'root'}-{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class Listing:
    """One partition as discovery listed it, in key order.

    Attributes:
        objects: the objects that no commit names. The others are only counted, so that memory
            does not grow with work that is already done.
        committed_objects, committed_bytes: count and size of the objects that the log names.
        newest: the latest modification time of all objects, UNIX seconds, or 0.0.
        complete: False if listing stopped before the end of the partition.
        last_key: the last key listed, committed ones included; empty if there was none.
        overwritten: objects whose key a commit names with another ETag.
    """

    partition: Partition
    objects: tuple[SourceObject, ...]
    committed_objects: int = 0
    committed_bytes: int = 0
    newest: float = 0.0
    complete: bool = True
    last_key: str = ""
    overwritten: Skipped = field(default_factory=lambda: Skipped(0, 0))


@dataclass(frozen=True, slots=True)
class Signature:
    """What two sources must have in common to share an output: format, compression and header.

    ``header`` is the header line or lines of CSV, TSV, VPC flow and CloudFront sources, without
    line end and BOM; empty for other formats. ``dialect`` is that of CSV and TSV, see
    :class:`compactor.formats.columns.Begin`.
    """

    format: Format
    compression: Compression
    header: bytes = b""
    dialect: bytes = b""


class TableDialect(msgspec.Struct, frozen=True):
    """How the CSV or TSV sources of one output are written.

    Attributes:
        delimiter: one character.
        header: whether the first record of each source names the columns.
        quotes: whether fields may be in double quotes.
        backslash: whether a backslash escapes the next character.
    """

    delimiter: str
    header: bool
    quotes: bool = True
    backslash: bool = False


@dataclass(frozen=True, slots=True)
class OutputForm:
    """How an output is written. Fixed by the plan and used unchanged by every later step.

    Attributes:
        compression: None to keep the compression of the sources.
        lines: whether the records of JSON documents are written one per line.
        rows: whether it holds rows (Parquet) instead of its sources' bytes.
    """

    compression: Compression | None = None
    lines: bool = False
    rows: bool = False

    def encoding_of(self, sources: Compression) -> Compression:
        """Return the compression of the output for sources of this compression."""
        return self.compression or sources


@dataclass(frozen=True, slots=True)
class ObjectGroup:
    """The ordered sources of one output.

    Attributes:
        id: hash of the ordered (key, ETag) pairs and of the options that affect the bytes.
        sources: in key order.
        copy: whether the group is one source that is large enough to be copied server-side, byte
            for byte.
        form: how the output is written if it is not such a copy.
    """

    id: str
    sources: tuple[SourceObject, ...]
    copy: bool = False
    form: OutputForm = field(default_factory=OutputForm)

    @property
    def size(self) -> int:
        """Total size of the sources as listed, in bytes."""
        return sum(source.size for source in self.sources)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Count and bytes of the objects skipped for one reason, with a few example keys.

    ``oldest`` is when the oldest of them was last modified, in UNIX seconds; 0.0 if unknown.
    """

    objects: int
    bytes: int
    examples: tuple[str, ...] = ()
    oldest: float = field(default=0.0, compare=False)

    def less(self, other: Skipped) -> Skipped:
        """Return this minus the other. Examples and oldest stay while any object is left."""
        objects, size = self.objects - other.objects, self.bytes - other.bytes
        return Skipped(objects, size, self.examples, self.oldest) if objects else Skipped(0, size)

    def plus(self, other: Skipped, shown: int = 0) -> Skipped:
        """Return the sum of both.

        Args:
            other: objects that are not among these.
            shown: the most examples to keep of both; 0 keeps those of the first that has any.
        """
        examples = (self.examples + other.examples)[:shown] or self.examples or other.examples
        oldest = min(filter(None, (self.oldest, other.oldest)), default=0.0)
        return Skipped(self.objects + other.objects, self.bytes + other.bytes, examples, oldest)


def add_skipped(
    total: dict[_Reason, Skipped], more: Mapping[_Reason, Skipped], shown: int = 0
) -> None:
    """Add skipped objects by reason; ``shown`` as of :meth:`Skipped.plus`."""
    for reason, skipped in more.items():
        total[reason] = total.get(reason, Skipped(0, 0)).plus(skipped, shown)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a run is going to do in a partition. A pure decision; other modules execute it."""

    partition: Partition
    groups: tuple[ObjectGroup, ...]
    skipped: Mapping[SkipReason, Skipped] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.groups


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One stored part of a multipart upload. ``etag`` is the one CompleteMultipartUpload needs.

    ``crc32`` is the checksum of its bytes: computed here for uploaded parts, returned by the store
    for copied ones, None if neither is known.
    """

    number: int
    etag: str
    size: int
    crc32: int | None = field(default=None, compare=False)


class Quarantined(msgspec.Struct, frozen=True):
    """A source whose content was left alone, and the reason."""

    source: SourceObject
    reason: QuarantineReason
    detail: str


def is_run_id(text: str) -> bool:
    """Return whether a text is a valid run id."""
    return _RUN_ID.fullmatch(text) is not None
