r"""What the plain bytes of a source are, where nothing else can be meant.

Two sources are joined only when it is certain that a reader of the joined object sees the records
of both and nothing else. Certain is what ``format`` says, and what the bytes prove; everything
else is left alone. The first rule that holds decides; a BOM before the content is overlooked.

| # | Bytes | Key | Format | Header |
|---|---|---|---|---|
| 0 | nothing (or a BOM alone) | any | None: fits any group | |
| 1 | the BOM of UTF-16 or UTF-32 | any | refused: ENCODING | |
| 2 | ``{"Records":[`` with any blanks | ``_CloudTrail_`` in it | CLOUDTRAIL, proven by its framer | |
| 3 | ``{"Records":[``, and not one whole object on the first line with more lines behind | any | CLOUDTRAIL | |
| 4 | ``{``, and every line that is not blank is one whole JSON object | any | JSON_LINES | |
| 5 | ``{``, and the first line that is not begins with a whole object and ``{`` behind it | any | UNDELIMITED_JSON, proven by its framer | |
| 6 | any other ``{`` | any | refused: OPEN_END, UNKNOWN_FORMAT | |
| 7 | the magic of a known binary format, NUL, more than 1 in 100 control characters | any | refused: BINARY, or ENCODING for UTF-16 and UTF-32 | |
| 8 | ``#Version:`` line, then ``#Fields:`` line, and no other comment line behind them but the same | any | CLOUDFRONT | both lines |
| 9 | first line of three or more known flow log field names, in any order (half of them known suffices with the key), and lines of as many fields below it | ``_vpcflowlogs_`` in it, for the half | VPC_FLOW | first line |
| 10 | a first record that is certainly a row, or likely a header (``first_record``); others are refused: AMBIGUOUS_HEADER | ends in .csv, .tsv, perhaps with .gz, .gzip, .zst, .zstd | CSV, TSV | none, or first record |
| 11 | lines of a log (``log_lines``) | any | TEXT | |
| 12 | anything else | any | refused: UNKNOWN_FORMAT | |

Rule 4 decodes all that is held of a source (16 MiB), the rest as it passes. What is not UTF-8 is
refused as ENCODING, but for access logs (their structure tells, and clients send such bytes) and
with ``encoding: "single_byte"``. A source that ends within a character, or between ``\r`` and
``\n``, is refused as OPEN_END, one that ends within quotes as OPEN_QUOTE.

A format that is forced is not questioned, but for what would touch records of other sources: the
BOM of UTF-16, and the ends. It takes the first line (record, comment lines) for the header where
the format has one.

Sources: VPC flow log and transit gateway flow log records and CloudFront standard logs in the AWS
documentation.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from compactor.errors import UnreadableSource
from compactor.formats import characters, json_lines, log_lines
from compactor.formats.characters import Reading
from compactor.formats.cloudtrail import OPENING
from compactor.formats.ends import refuse_end
from compactor.formats.first_record import LONGEST_HEADER, first_record
from compactor.formats.json_text import is_object
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.model import Compression, Format, QuarantineReason, Signature

_BLANKS = b" \t\r\n"
_OBJECT = re.compile(rb"[ \t\r\n]*\{")
_LOOKED_AT_FOR_ROWS = 8 << 10
_SAMPLED_ROWS = 20
_BINARY = frozenset({Format.PARQUET})
_CLOUDFRONT = re.compile(rb"(#Version:[^\n]*\n#Fields:[^\n]*)(\n|\Z)")
_COMMENT = re.compile(rb"\n(#[^\r\n]*)")
_COMMENTS = re.compile(rb"(#[^\n]*(?:\n#[^\n]*)*)(\n|\Z)")
# A first line of names of flow log fields and nothing else.
_LOWER_WORDS = re.compile(rb"[a-z \t\r\f\v-]*+(?:\n|\Z)")
_FIELD_NAMES = re.compile(rb"[a-z][a-z-]*(?: [a-z][a-z-]*)* ?\Z")
_FLOW_FIELDS = frozenset(
    b"""version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes
    start end action log-status vpc-id subnet-id instance-id tcp-flags type pkt-srcaddr
    pkt-dstaddr region az-id sublocation-type sublocation-id pkt-src-aws-service
    pkt-dst-aws-service flow-direction traffic-path ecs-cluster-arn ecs-cluster-name
    ecs-container-instance-arn ecs-container-instance-id ecs-container-id
    ecs-second-container-id ecs-service-name ecs-task-definition-arn ecs-task-arn ecs-task-id
    reject-reason resource-id encryption-status resource-type tgw-id tgw-attachment-id
    tgw-src-vpc-account-id tgw-dst-vpc-account-id tgw-src-vpc-id tgw-dst-vpc-id tgw-src-subnet-id
    tgw-dst-subnet-id tgw-src-eni tgw-dst-eni tgw-src-az-id tgw-dst-az-id tgw-pair-attachment-id
    packets-lost-no-route packets-lost-blackhole packets-lost-mtu-exceeded packets-lost-ttl-expired
    """.split()
)
_FLOW_KEY = "_vpcflowlogs_"
_FEWEST_FLOW_FIELDS = 3
# Of a header under a key of flow logs: AWS adds fields.
_LEAST_KNOWN = 1 / 2
_SHORT_HEADER = 4 << 10
_DELIMITED = (Format.CSV, Format.TSV)
_ENCODINGS = (".gz", ".gzip", ".zst", ".zstd")


@dataclass(frozen=True, slots=True)
class Detected:
    """A source's format and, where the format has one, its header (no BOM, no last line end).

    Attributes:
        dialect: of CSV and TSV without a header, see
            :class:`compactor.formats.first_record.FirstRecord`.
        evidence: likewise; None where the header needs no confirmation by other sources.
    """

    format: Format
    header: bytes = b""
    dialect: bytes = b""
    evidence: int | None = field(default=None, compare=False)

    def signature(self, compression: Compression) -> Signature:
        """What must be equal for two sources to share an output."""
        make = _signature if len(self.header) <= _SHORT_HEADER else Signature
        return make(self.format, compression, self.header, self.dialect)


@lru_cache(64)
def _signature(
    format: Format, compression: Compression, header: bytes, dialect: bytes
) -> Signature:
    # Sources of one kind have one header; to compare it with itself costs nothing.
    return Signature(format, compression, header, dialect)


_PLAIN_READING = Reading()
_TEXT = Detected(Format.TEXT)
_OBJECTS = {
    format: Detected(format)
    for format in (Format.JSON_LINES, Format.UNDELIMITED_JSON, Format.CLOUDTRAIL)
}


def detect(
    head: bytes,
    key: str,
    *,
    complete: bool,
    forced: Format | None,
    reading: Reading = _PLAIN_READING,
    csv_header: str = "auto",
) -> Detected | None:
    """The format of a source, by the rules above.

    Args:
        head: first plain bytes, 64 KiB or more of them, or all there are.
        key: of the source; a hint only.
        complete: ``head`` is the whole source.
        forced: the format the caller insists on.
        reading: what the caller takes for characters.
        csv_header: what the caller says of the first record of CSV and TSV.

    Returns:
        None for a source without content, which fits any group.

    Raises:
        UnreadableSource: what the source is, is not certain; MALFORMED for a header that does
            not end within the head or, with ``forced``, is missing.
    """
    head = head.removeprefix(BOM)
    if not head:
        return None
    if forced is not None:
        if forced not in _BINARY:
            characters.refuse_wide(head)
        found = _forced(forced, head, csv_header, complete=complete)
        if complete and forced not in _BINARY:
            refuse_end(head, forced, forced=True, reading=reading)
        return found
    found = _certain(head, key, csv_header, complete=complete, reading=reading)
    if complete:
        refuse_end(head, found.format, forced=False, reading=reading)
    return found


def _certain(
    head: bytes, key: str, csv_header: str, *, complete: bool, reading: Reading
) -> Detected:
    if _OBJECT.match(head):
        return _OBJECTS[_json_format(head, key, complete=complete, reading=reading)]
    characters.refuse_binary(head, keep_nuls=reading.keep_nuls)
    if b"\n" not in head and b"\r" in head[:-1]:
        raise refused(QuarantineReason.UNKNOWN_FORMAT, "its lines end with CR alone", head, "")
    found = _headed(head, key, csv_header, complete=complete)
    if found is None and _is_structured_log(head, complete=complete, reading=reading):
        return _TEXT
    if not reading.single_byte:
        characters.refuse_encoding(head, complete=complete)
    return found or _TEXT


def _is_structured_log(head: bytes, *, complete: bool, reading: Reading) -> bool:
    """Whether these lines of a log are known by their structure, whatever their encoding.

    Raises:
        UnreadableSource: UNKNOWN_FORMAT, they are no lines of a log; OPEN_QUOTE.
    """
    text = characters.ascii_of(head, keep_nuls=reading.keep_nuls)
    form = log_lines.form_of(text)
    if form is None:
        json_lines.refuse_other_json(text)
        seen = "its first line is not known as a line of a log"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)
    log_lines.refuse_other_lines(text, b"", form, complete=complete)
    structured = log_lines.is_structured(form)
    if complete:
        log_lines.refuse_open_quote(text, structured=structured)
    return structured


def _json_format(head: bytes, key: str, *, complete: bool, reading: Reading) -> Format:
    trail = OPENING.match(head) is not None
    if trail and ("_CloudTrail_" in key or _is_one_document(head)):
        return Format.CLOUDTRAIL
    if not reading.single_byte:
        characters.refuse_encoding(head, complete=complete)
    text = head if head.isascii() else characters.ascii_of(head, keep_nuls=False)
    return json_lines.format_of_objects(text, complete=complete)


def _is_one_document(head: bytes) -> bool:
    """Whether there is but one line, or the first one is no whole object nor several."""
    line, _, rest = head.lstrip(_BLANKS).partition(b"\n")
    if json_lines.is_undelimited(line):
        return False
    return not (rest.strip(_BLANKS) and is_object(line))


def _headed(head: bytes, key: str, csv_header: str, *, complete: bool) -> Detected | None:
    found = _CLOUDFRONT.match(head)
    if found:
        _refuse_other_comments(head, found)
        return Detected(Format.CLOUDFRONT, _ended(found, complete=complete))
    if _LOWER_WORDS.match(head) or _FLOW_KEY in key:
        line = _LINE.match(head)
        if line is not None and _is_flow_header(line, key, head):
            return Detected(Format.VPC_FLOW, _ended(line, complete=complete))
    delimited = _delimited_by_name(key)
    if delimited is None:
        return None
    return _delimited(delimited, head, csv_header, complete=complete)


def _refuse_other_comments(head: bytes, header: re.Match[bytes]) -> None:
    """Raise UnreadableSource where a line behind the header says something else of the rows."""
    if b"\n#" not in head[header.end(1) :]:
        return
    known = frozenset(header[1].replace(b"\r", b"").split(b"\n"))
    for found in _COMMENT.finditer(head, header.end(1)):
        if found[1] not in known:
            seen = "a comment line stands below its #Fields: line"
            raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, found[1])


def _delimited(format: Format, head: bytes, csv_header: str, *, complete: bool) -> Detected:
    return Detected(format, *first_record(head, format, csv_header, complete=complete))


def _is_flow_header(found: re.Match[bytes], key: str, head: bytes) -> bool:
    line = found[1].removesuffix(b"\r")
    names = line.split()
    known = len(_FLOW_FIELDS.intersection(names))
    if known < _FEWEST_FLOW_FIELDS or len(set(names)) < len(names):
        return False
    if known < len(names) and not (
        _FLOW_KEY in key and known >= _LEAST_KNOWN * len(names) and _FIELD_NAMES.match(line)
    ):
        return False
    if b"\n" + line in head[found.end(1) :]:
        return False
    rows = head[found.end() : found.end() + _LOOKED_AT_FOR_ROWS].split(b"\n")[:_SAMPLED_ROWS]
    # The last one may be cut off.
    return all(len(row.split()) == len(names) for row in rows[:-1] if row.strip())


def _delimited_by_name(key: str) -> Format | None:
    name = key.lower()
    if ".csv" not in name and ".tsv" not in name:
        return None
    for encoding in _ENCODINGS:
        name = name.removesuffix(encoding)
    if name.endswith(".csv"):
        return Format.CSV
    return Format.TSV if name.endswith(".tsv") else None


def _forced(forced: Format, head: bytes, csv_header: str, *, complete: bool) -> Detected:
    if forced in _DELIMITED:
        return _delimited(forced, head, csv_header, complete=complete)
    return Detected(forced, _forced_header(forced, head, complete=complete))


def _forced_header(forced: Format, head: bytes, *, complete: bool) -> bytes:
    if forced is Format.VPC_FLOW:
        return _ended(_LINE.match(head), complete=complete)
    if forced is Format.CLOUDFRONT:
        found = _COMMENTS.match(head)
        if found is None:
            raise _malformed("it does not start with a #Version: line")
        return _ended(found, complete=complete)
    return b""


_LINE = re.compile(rb"([^\n]*)(\n|\Z)")


def _ended(found: re.Match[bytes] | None, *, complete: bool) -> bytes:
    """The header found, if its line end (or the source's end) is in the head."""
    if found is None or not (found[2] or complete):
        raise _malformed("its header does not end within the first bytes read")
    if found.end(1) > LONGEST_HEADER:
        raise _malformed(f"its header is longer than {LONGEST_HEADER:,} bytes")
    return found[1].removesuffix(b"\r")


def _malformed(detail: str) -> UnreadableSource:
    return UnreadableSource(QuarantineReason.MALFORMED, detail)
