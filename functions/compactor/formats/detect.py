"""What the plain bytes of a source are.

Its first bytes tell, and where they leave it open, its key. The first rule that holds decides;
a BOM before the content is overlooked.

| # | Bytes | Key | Format | Header |
|---|---|---|---|---|
| 0 | nothing (or a BOM alone) | any | None: fits any group | |
| 1 | a NUL in the head, more than 1 in 20 control bytes in its first 4 KiB, or the magic of Parquet, ORC, Avro, Arrow, zip, 7z, bzip2, xz, lz4, snappy, gzip or zstd once more, ELF, an image, PDF | any | refused: UNKNOWN_FORMAT | |
| 2 | ``{"Records":[`` with any blanks | ``_CloudTrail_`` in it | CLOUDTRAIL | |
| 3 | a valid JSON object and ``}{`` (blanks between allowed) on the first line, within 64 KiB | any | UNDELIMITED_JSON | |
| 4 | ``{"Records":[``, and not one whole object on the first line with more lines behind | any | CLOUDTRAIL | |
| 5 | ``{``, or ``[`` before one of ``{ [ " ]`` | any | JSON_LINES | |
| 6 | ``#Version:`` line, then ``#Fields:`` line | any | CLOUDFRONT | both lines |
| 7 | first line of three or more known flow log field names, in any order | any | VPC_FLOW | first line |
| 8 | first line of lower-case words, no numbers | ``_vpcflowlogs_`` in it | VPC_FLOW | first line |
| 9 | a first record that is certainly a row, or likely a header (``first_record``); others are refused: AMBIGUOUS_HEADER | ends in .csv, .tsv, perhaps with .gz, .gzip, .zst, .zstd | CSV, TSV | none, or first record |
| 10 | anything else | any | TEXT | |

A headed format whose header is longer
than 1 MiB is refused as MALFORMED. A forced format skips all rules but 0, and takes the
first line (comment lines) for the header where the format has one; of CSV and TSV,
``csv_header`` says what the first record is.

Sources: VPC flow log records and CloudFront standard logs in the AWS documentation.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.cloudtrail import OPENING
from compactor.formats.first_record import LONGEST_HEADER, first_record
from compactor.formats.lines import BOM
from compactor.formats.undelimited import first_boundary
from compactor.model import Compression, Format, QuarantineReason, Signature

_BLANKS = b" \t\r\n"
_LOOKED_AT_FOR_CONTROLS = 4096
_LOOKED_AT_FOR_JSON = 64 << 10
_MAX_CONTROL_SHARE = 1 / 20
# Tab to CR, ESC (colours), and Hive's field delimiters 1 to 3 do occur in text.
_CONTROLS = bytes({*range(4, 9), *range(14, 27), *range(28, 32), 127})
_MAGIC = re.compile(
    rb"(?:PAR1|PARE|ORC)[^\x20-\x7e\t\r\n]"
    rb"|Obj\x01|ARROW1|SEQ[\x00-\x06]|PK(?:\x03\x04|\x05\x06|\x07\x08)|7z\xbc\xaf\x27\x1c|Rar!\x1a"
    rb"|BZh[1-9](?:1AY&SY|\x17\x72\x45\x38)|\xfd7zXZ\x00|\x04\x22\x4d\x18"
    rb"|\xff\x06\x00\x00sNaPpY|\x82SNAPPY|\x1f\x8b\x08|\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"
    rb"|\x7fELF|\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|%PDF-",
    re.DOTALL,
)
_JSON_START = re.compile(rb'[ \t\r\n]*(?:\{|\[[ \t\r\n]*[\[{"\]])')
_CLOUDFRONT = re.compile(rb"(#Version:[^\n]*\n#Fields:[^\n]*)(\n|\Z)")
_COMMENTS = re.compile(rb"(#[^\n]*(?:\n#[^\n]*)*)(\n|\Z)")
_FIELD_NAMES = re.compile(rb"[a-z][a-z-]*(?: [a-z][a-z-]*)* ?\Z")
_FLOW_FIELDS = frozenset(
    b"""version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes
    start end action log-status vpc-id subnet-id instance-id tcp-flags type pkt-srcaddr
    pkt-dstaddr region az-id sublocation-type sublocation-id pkt-src-aws-service
    pkt-dst-aws-service flow-direction traffic-path ecs-cluster-arn ecs-cluster-name
    ecs-container-instance-arn ecs-container-instance-id ecs-container-id
    ecs-second-container-id ecs-service-name ecs-task-definition-arn ecs-task-arn ecs-task-id
    reject-reason resource-id encryption-status""".split()
)
_FEWEST_FLOW_FIELDS = 3
_DELIMITED = (Format.CSV, Format.TSV)
_ENCODINGS = (".gz", ".gzip", ".zst", ".zstd")


class _Object(msgspec.Struct, gc=False):
    """Any JSON object, checked and not kept."""


_objects = msgspec.json.Decoder(_Object)


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
        return Signature(self.format, compression, self.header, self.dialect)


def detect(
    head: bytes, key: str, *, complete: bool, forced: Format | None, csv_header: str = "auto"
) -> Detected | None:
    """The format of a source, by the rules above.

    Args:
        head: first plain bytes, 64 KiB or more of them, or all there are.
        key: of the source; a hint only.
        complete: ``head`` is the whole source.
        forced: the format the caller insists on.
        csv_header: what the caller says of the first record of CSV and TSV.

    Returns:
        None for a source without content, which fits any group.

    Raises:
        UnreadableSource: UNKNOWN_FORMAT for binary content; MALFORMED for a header that does
            not end within the head or, with ``forced``, is missing.
    """
    head = head.removeprefix(BOM)
    if not head:
        return None
    if forced is not None:
        return _forced(forced, head, csv_header, complete=complete)
    _refuse_binary(head)
    if _JSON_START.match(head):
        return Detected(_json_format(head[:_LOOKED_AT_FOR_JSON], key))
    return _headed(head, key, csv_header, complete=complete) or Detected(Format.TEXT)


def _refuse_binary(head: bytes) -> None:
    looked_at = head[:_LOOKED_AT_FOR_CONTROLS]
    controls = len(looked_at) - len(looked_at.translate(None, _CONTROLS))
    if _MAGIC.match(head) or b"\0" in head or controls > _MAX_CONTROL_SHARE * len(looked_at):
        detail = f"binary content, it starts with {head[:8]!r}"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)


def _json_format(head: bytes, key: str) -> Format:
    trail = OPENING.match(head) is not None
    if trail and "_CloudTrail_" in key:
        return Format.CLOUDTRAIL
    content = head.lstrip(_BLANKS)
    line, _, rest = content.partition(b"\n")
    if _is_undelimited(line):
        return Format.UNDELIMITED_JSON
    if trail and not (rest.strip(_BLANKS) and _is_object(line)):
        return Format.CLOUDTRAIL
    return Format.JSON_LINES


def _is_undelimited(line: bytes) -> bool:
    cut = first_boundary(line)
    return cut is not None and _is_object(line[:cut])


def _is_object(text: bytes) -> bool:
    try:
        _objects.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _headed(head: bytes, key: str, csv_header: str, *, complete: bool) -> Detected | None:
    found = _CLOUDFRONT.match(head)
    if found:
        return Detected(Format.CLOUDFRONT, _ended(found, complete=complete))
    line = _LINE.match(head)
    if line is not None and _is_flow_header(line[1].removesuffix(b"\r"), key):
        return Detected(Format.VPC_FLOW, _ended(line, complete=complete))
    delimited = _delimited_by_name(key)
    if delimited is None:
        return None
    return _delimited(delimited, head, csv_header, complete=complete)


def _delimited(format: Format, head: bytes, csv_header: str, *, complete: bool) -> Detected:
    return Detected(format, *first_record(head, format, csv_header, complete=complete))


def _is_flow_header(line: bytes, key: str) -> bool:
    names = line.split()
    if len(names) >= _FEWEST_FLOW_FIELDS and _FLOW_FIELDS.issuperset(names):
        return True
    return "_vpcflowlogs_" in key and _FIELD_NAMES.match(line) is not None


def _delimited_by_name(key: str) -> Format | None:
    name = key.lower()
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
