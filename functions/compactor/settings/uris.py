"""S3 URIs: locations of the source, the destination and the state, and whether they overlap."""

from __future__ import annotations

import re

import msgspec

from compactor.errors import InvalidInput

URI_ACCEPTED = "an S3 URI such as s3://bucket/prefix/"
SOURCE_ACCEPTED = (
    "an S3 URI such as s3://bucket/prefix/, where * stands for a segment or a part of one"
)
MAX_PREFIX_BYTES = 512

# Looser than Amazon's naming rules, because S3-compatible stores allow more.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
# What S3 has besides general purpose buckets, by names that only AWS gives ("General purpose bucket
# naming rules" in the Amazon S3 User Guide), and why a run cannot use it.
_NO_ORDER = "directory buckets are not supported, because they do not list keys in order"
_HIDDEN = (
    "access points are not supported, because their names hide which bucket they lead to, and so"
    " whether source and destination overlap: name the bucket"
)
_MANY_REGIONS = (
    "Multi-Region Access Points are not supported, because a read may miss the last write: name the"
    " bucket of one region"
)
_OUTPOSTS = "S3 on Outposts is not supported: name a bucket of a region"
_UNUSABLE = (
    (re.compile(r".*--x-s3"), _NO_ORDER),
    (re.compile(r".*\.mrap|arn:[^:]*:s3::.*"), _MANY_REGIONS),
    (re.compile(r".*--op-s3|arn:[^:]*:s3-outposts:.*"), _OUTPOSTS),
    (re.compile(r".*-s3alias|.*--ol-s3|arn:.*"), _HIDDEN),
)
# Control characters, and halves of UTF-16 pairs, which no key can have.
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class S3Uri(msgspec.Struct, frozen=True):
    """A bucket and a prefix in it.

    Attributes:
        bucket: name of the bucket.
        prefix: ends in ``/``; empty for the whole bucket.
    """

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, field: str, text: object) -> S3Uri:
        """Parse a URI without wildcards.

        Args:
            field: name of its input field.
            text: the URI.

        Raises:
            InvalidInput: it is not such a URI.
        """
        try:
            return parse_location(text)
        except ValueError as error:
            raise InvalidInput(field, text, str(error)) from None

    @property
    def uri(self) -> str:
        """The normalised URI, ending in ``/``."""
        return f"s3://{self.bucket}/{self.prefix}"

    def overlaps(self, other: S3Uri) -> bool:
        """Return whether one contains the other, by whole segments, or both are the same."""
        if self.bucket != other.bucket:
            return False
        # Prefixes end in "/", so logs/ does not contain logs-compacted/.
        return self.prefix.startswith(other.prefix) or other.prefix.startswith(self.prefix)


class SourceLocation(msgspec.Struct, frozen=True):
    """The source: a root, and the segments below it from the first wildcard on.

    Attributes:
        root: what precedes the first segment with a wildcard; paths are relative to it.
        pattern: the remaining segments; empty when the URI has no wildcard.
    """

    root: S3Uri
    pattern: tuple[str, ...]

    @property
    def uri(self) -> str:
        """The normalised URI, ending in ``/``."""
        return self.root.uri + "".join(f"{segment}/" for segment in self.pattern)


def parse_location(text: object) -> S3Uri:
    """Parse the URI of a destination or of the state.

    Raises:
        ValueError: it is not such a URI; the message says what is accepted.
    """
    bucket, segments = _split(text, URI_ACCEPTED)
    if any("*" in segment for segment in segments):
        raise ValueError(f"{URI_ACCEPTED}, without wildcards")
    return _location(bucket, segments)


def parse_source(text: object) -> SourceLocation:
    """Parse the URI of a source, which may have wildcards.

    Raises:
        ValueError: it is not such a URI; the message says what is accepted.
    """
    bucket, segments = _split(text, SOURCE_ACCEPTED)
    if any("**" in segment for segment in segments):
        raise ValueError(f"{SOURCE_ACCEPTED}; one * never spans a /, and there is no **")
    names = str(text).rpartition("/")[2]
    if "*" in names and "." in names:
        accepted = f"{SOURCE_ACCEPTED}, and objects are chosen by include, such as include {names}"
        raise ValueError(accepted)
    first = next((n for n, segment in enumerate(segments) if "*" in segment), len(segments))
    return SourceLocation(_location(bucket, segments[:first]), segments[first:])


def _split(text: object, accepted: str) -> tuple[str, tuple[str, ...]]:
    if not isinstance(text, str) or not text.startswith("s3://") or text != text.strip():
        raise ValueError(accepted)
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    for named, reason in _UNUSABLE:
        if named.fullmatch(bucket):
            raise ValueError(f"{accepted}; {reason}")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise ValueError(f"{accepted}; a bucket name has 3 to 63 letters, digits, dots and hyphens")
    segments = tuple(prefix.removesuffix("/").split("/")) if prefix else ()
    if any(segment in ("", ".", "..") or _CONTROL.search(segment) for segment in segments):
        raise ValueError(f"{accepted}; no empty segment, no . or .. and no control character")
    # The last slash does not count: a normalised URI always has it.
    if len(prefix.removesuffix("/").encode()) > MAX_PREFIX_BYTES:
        raise ValueError(f"{accepted}; a prefix has at most {MAX_PREFIX_BYTES} bytes")
    return bucket, segments


def _location(bucket: str, segments: tuple[str, ...]) -> S3Uri:
    return S3Uri(bucket, "".join(f"{segment}/" for segment in segments))
