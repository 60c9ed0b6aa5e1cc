"""The nouns everything speaks; immutable, and free of any store or clock.

Times are UNIX seconds (float, UTC). Sizes are bytes. ETags are kept without quotes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

#: Keys that are shown of objects that were skipped for one reason.
SHOWN_EXAMPLES = 5
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_MD5 = re.compile(r"[0-9a-f]{32}")


class Format(StrEnum):
    """What the plain bytes of a source are, which decides how sources are joined."""

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
    """How the bytes of an object are encoded."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class SkipReason(StrEnum):
    """Why a listed object is not in any group of a plan. Every skip is counted."""

    COMMITTED = "already_committed"
    TOO_YOUNG = "too_young"
    OPEN_PARTITION = "open_partition"
    TOO_FEW = "too_few_objects"
    DOES_NOT_PAY = "does_not_pay_back"
    EMPTY = "empty"
    DIRECTORY_MARKER = "directory_marker"
    NOT_INCLUDED = "not_included"
    EXCLUDED = "excluded"
    RULE = "left_by_a_rule"
    QUIET = "quiet_hours"
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
    AGAIN = "delivered_again"
    GONE = "gone_since_the_inventory"
    GONE_EVENT = "gone_since_its_event"


class QuarantineReason(StrEnum):
    """Why the content of a source was left alone."""

    CORRUPT = "corrupt_compression"
    TRUNCATED = "truncated"
    BOMB = "decompression_bomb"
    UNKNOWN_FORMAT = "unknown_format"
    BINARY = "binary"
    ENCODING = "unknown_encoding"
    OPEN_END = "open_end"
    AMBIGUOUS_HEADER = "ambiguous_header"
    OPEN_QUOTE = "open_quote"
    MALFORMED = "malformed_document"
    TOO_LARGE = "document_too_large"
    ARCHIVED = "archived_access_tier"
    ACCESS_DENIED = "access_denied"
    ENCRYPTED = "encrypted"
    RECORDS_DIFFER = "records_differ"
    CLIENT_ENCRYPTED = "client_side_encrypted"


#: Nothing is wrong with the bytes themselves: every run asks for such a source again.
DENIED_REASONS = frozenset({QuarantineReason.ACCESS_DENIED, QuarantineReason.ENCRYPTED})
PASSING_REASONS = DENIED_REASONS | {QuarantineReason.ARCHIVED}
#: Storage classes whose objects are readable only while there is a restored copy. GLACIER_IR is
#: readable immediately, and so is not here.
ARCHIVED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})


@dataclass(frozen=True, slots=True)
class SourceObject:
    """One listed object, pinned by its ETag.

    Attributes:
        restored_until: how long the restored copy of an archived object can be read, UNIX
            seconds; 0 where there is none.
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
        """16-byte digest of bucket, key and ETag: what the commit log remembers."""
        if not self._identity:
            text = "\0".join((self.bucket, self.key, self.etag))
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
            # Asked for half a dozen times per source; the one field that may be filled in late.
            object.__setattr__(self, "_identity", digest.digest())
        return self._identity


def is_md5(etag: str) -> bool:
    """True for an ETag that looks like an MD5 sum; under SSE-KMS and SSE-C it is not one."""
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
        """Name safe in any key: readable tail plus a digest of the path."""
        readable = "".join(c if c.isalnum() or c in "=-_" else "-" for c in self.path.strip("/"))
        digest = hashlib.blake2b(self.path.encode("utf-8", "surrogatepass"), digest_size=8)
        return f"{readable[-80:] or 'root'}-{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class Listing:
    """What discovery saw of one partition, in key order.

    Attributes:
        objects: what no commit names yet; the others are only counted, so that memory does
            not grow with what is done already.
        committed_objects, committed_bytes: the objects that the commit log names.
        newest: the latest arrival among all of them, UNIX seconds; 0.0 when there is none.
        complete: False when listing stopped before the end of the partition.
        last_key: the last key seen, committed ones included; empty when there was none.
        returned: objects that the commit log names, and that were put again since.
    """

    partition: Partition
    objects: tuple[SourceObject, ...]
    committed_objects: int = 0
    committed_bytes: int = 0
    newest: float = 0.0
    complete: bool = True
    last_key: str = ""
    returned: tuple[SourceObject, ...] = ()

    def with_returned(self, identities: Container[bytes]) -> Listing:
        """The same, where only these were put again, and the others are as commits name them."""
        back = tuple(one for one in self.returned if one.identity in identities)
        size = sum(one.size for one in self.returned) - sum(one.size for one in back)
        return replace(
            self,
            returned=back,
            committed_objects=self.committed_objects + len(self.returned) - len(back),
            committed_bytes=self.committed_bytes + size,
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """What must be equal for two sources to share an output: format, encoding, header.

    ``header`` is the header line(s) of CSV, TSV, VPC flow and CloudFront sources without
    line end and BOM, else empty. ``dialect`` is what was found out of how CSV and TSV are written:
    a delimiter, and of rows without a header the number of fields.
    """

    format: Format
    compression: Compression
    header: bytes = b""
    dialect: bytes = b""


class TableDialect(msgspec.Struct, frozen=True):
    """How the CSV or TSV sources of one output are written.

    Attributes:
        delimiter: empty where each source shows its own.
        header: the first record of each source names the columns.
    """

    delimiter: str
    header: bool


@dataclass(frozen=True, slots=True)
class OutputForm:
    """How an output is written: decided by the plan, and kept by all that comes after it.

    Attributes:
        compression: None for that of its sources.
        lines: records of JSON documents are written one per line.
        copies: the store may copy large sources; else all bytes pass through the worker.
    """

    compression: Compression | None = None
    lines: bool = False
    copies: bool = True

    def encoding_of(self, sources: Compression) -> Compression:
        """How the output is encoded, given how its sources are."""
        return self.compression or sources


@dataclass(frozen=True, slots=True)
class ObjectGroup:
    """Ordered sources that become one output.

    Attributes:
        id: hash of the ordered (key, ETag) pairs and of the options that shape the bytes.
        sources: in key order.
        copy: the one source is large enough to be copied server-side, byte for byte.
        form: how the output is written where it is not such a copy.
        held: of sources at whose key something was compacted before, by identity: the marks of
            that (:mod:`compactor.log.content_index`).
    """

    id: str
    sources: tuple[SourceObject, ...]
    copy: bool = False
    form: OutputForm = field(default_factory=OutputForm)
    held: Mapping[bytes, frozenset[int]] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """Listed bytes of all sources."""
        return sum(source.size for source in self.sources)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Count and bytes of the objects skipped for one reason, with a few keys to show."""

    objects: int
    bytes: int
    examples: tuple[str, ...] = ()

    def less(self, other: Skipped) -> Skipped:
        """This without the other; with its own examples while there is anything left."""
        objects = self.objects - other.objects
        return Skipped(objects, self.bytes - other.bytes, self.examples if objects else ())

    def plus(self, other: Skipped, shown: int = 0) -> Skipped:
        """Both together.

        Args:
            other: objects that are not among these.
            shown: examples of both, at most so many; 0 for those of the first that has any.
        """
        examples = (self.examples + other.examples)[:shown] or self.examples or other.examples
        return Skipped(self.objects + other.objects, self.bytes + other.bytes, examples)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A pure decision; another module executes it."""

    partition: Partition
    groups: tuple[ObjectGroup, ...]
    skipped: Mapping[SkipReason, Skipped] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """True when there is nothing to do."""
        return not self.groups


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One stored part of a multipart upload. ``etag`` is what CompleteMultipartUpload wants.

    ``crc32`` is that of its bytes: ours of what was sent, the store's own of what it copied; None
    where neither is known.
    """

    number: int
    etag: str
    size: int
    crc32: int | None = field(default=None, compare=False)


class Quarantined(msgspec.Struct, frozen=True):
    """A source left alone, and why."""

    source: SourceObject
    reason: QuarantineReason
    detail: str


@dataclass(frozen=True, slots=True)
class Again:
    """A source with the content that a commit of the same key has already.

    Attributes:
        source: what was delivered again.
        of: sequence of that commit; 0 before it is known.
        plain_bytes, crc32: of the content once decompressed, as that commit's manifest has them.
        stored_md5: hex sum of the object as it is stored, where S3 copied what was there before;
            only until it was compared with that.
    """

    source: SourceObject
    of: int
    plain_bytes: int | None
    crc32: int | None
    stored_md5: str = ""


def is_run_id(text: str) -> bool:
    """True for what can name a run."""
    return _RUN_ID.fullmatch(text) is not None
