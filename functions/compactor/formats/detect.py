r"""Detects the format of a source from its plain bytes, if only one format is possible.

Two sources are joined only if it is certain that a reader of the joined object sees the records
of both and nothing else. The setting ``format`` and proof by the bytes make it certain; all other
sources are left alone. The first rule that holds decides; a BOM before the content is ignored.

| # | Bytes | Key | Format | Header |
|---|---|---|---|---|
| 0 | nothing (or a BOM alone) | any | None: fits any group | |
| 1 | the BOM of UTF-16 or UTF-32; two of UTF-8 | any | refused: ENCODING; UNKNOWN_FORMAT | |
| 2 | ``{`` and a line break or ``"Records"``, and one whole document of a known list and known fields (``listed``) | no ``_CloudTrail_`` | JSON_LIST | its fields |
| 3 | ``{"Records":[`` with any blanks | ``_CloudTrail_`` in it | CLOUDTRAIL, proven by its framer | |
| 4 | ``{"Records":[``, and not one whole object on the first line with more lines after |  any | CLOUDTRAIL | |
| 5 | ``{``, and every line that is not blank is one whole JSON object | any | JSON_LINES | |
| 6 | ``{``, and the first line that is not begins with a whole object and ``{`` after it | any | UNDELIMITED_JSON, proven by its framer | |
| 7 | any other ``{`` | any | refused: OPEN_END, UNKNOWN_FORMAT | |
| 8 | the magic of a known binary format, NUL, more than 1 in 100 control characters | any | refused: BINARY, or ENCODING for UTF-16 and UTF-32 | |
| 9 | ``#Version:`` line, then ``#Fields:`` line, and no other comment line after them but the same | any | CLOUDFRONT | both lines |
| 10 | first line of three or more known flow log field names, in any order (half of them known suffices with the key), and lines of as many fields below it | ``_vpcflowlogs_`` in it, for the half | VPC_FLOW | first line |
| 11 | a first record that the data set (``csv_evidence``) or ``csv_header`` decides to be a header or a row; others are refused: AMBIGUOUS_HEADER | ends in .csv, .tsv, perhaps with .gz, .gzip, .zst, .zstd | CSV, TSV | first record, or none |
| 12 | one array whose first element is an object, or empty, and no JSON-LD | any | JSON_ARRAY, proven by its framer | |
| 13 | a first line with the structure of an access log, or a date and time at its start (``log_lines``) | any | TEXT | |
| 14 | UTF-8 without control characters but colours, that looks like no document and no table (``document_shapes``), and has no line with a date first below one without | ends in .log, .txt, .out, .err, or in none of letters; perhaps with a rotation or compression after | TEXT, if other sources of its group begin otherwise (``compactor.outputs.neighbours``) | |
| 15 | anything else | any | refused: UNKNOWN_FORMAT, BINARY or ENCODING | |

Rule 5 decodes all that is held of a source (16 MiB), and the rest while it is streamed. Sources
that are not UTF-8 are refused as ENCODING, except access logs (their structure is enough, and
clients send such bytes) and with ``encoding: "single_byte"``. A source that ends within a
character, or between ``\r`` and ``\n``, is refused as OPEN_END, one that ends within quotes as
OPEN_QUOTE.

A forced format is not questioned, except for what would affect records of other sources: the BOM
of UTF-16, two of UTF-8, and the ends. If the format has a header, the first line (record, comment
lines) is the header.

Sources: VPC flow log and transit gateway flow log records and CloudFront standard logs in the AWS
documentation.
"""  # noqa: E501 - a table

from __future__ import annotations

import re

from compactor.formats import characters, json_lines
from compactor.formats.characters import Reading
from compactor.formats.ends import refuse_end
from compactor.formats.first_record import undecided
from compactor.formats.known_formats import BY_FIRST_BYTE, spec_of
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.formats.spec import Decide, Detected, Look
from compactor.model import Format, QuarantineReason

__all__ = ["Detected", "detect"]

_PLAIN_READING = Reading()
_BRACE = ord("{")
_CR = ord("\r")
_ABOVE_ASCII = 128
_FIRST = re.compile(rb"[ \t\r\n]*+(.)", re.DOTALL)
_BLANK = frozenset(b" \t\r\n")


def detect(
    head: bytes,
    key: str,
    *,
    complete: bool,
    forced: Format | None,
    reading: Reading = _PLAIN_READING,
    csv_header: str = "auto",
    decide: Decide = undecided,
) -> Detected | None:
    """Return the format of a source, by the rules above.

    Args:
        head: the first plain bytes: at least 64 KiB, or all there are.
        key: the source's key; only a hint.
        complete: whether ``head`` is the whole source.
        forced: the format that the caller insists on.
        reading: which bytes the caller accepts as text.
        csv_header: the caller's setting for the first record of CSV and TSV.
        decide: returns the decision of the source's data set, for ``auto``.

    Returns:
        None for an empty source, which fits any group.

    Raises:
        UnreadableSource: the format is not certain; MALFORMED for a header that does not end
            within the head or, with ``forced``, is missing.
    """
    head = head.removeprefix(BOM)
    if not head:
        return None
    if head.startswith(BOM):
        # If the first BOM were dropped, readers of the output would drop the second as theirs.
        seen = "it begins with two byte order marks"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head, "")
    look = Look(head, key, reading, csv_header, decide, complete=complete)
    if forced is not None:
        return _declared(forced, look)
    found = _certain(look)
    if complete and (head[-1] >= _ABOVE_ASCII or head[-1] == _CR):
        refuse_end(head, found.format, forced=False, reading=reading)
    return found


def _declared(forced: Format, look: Look) -> Detected:
    spec = spec_of(forced)
    text = spec.rows != "parquet"
    if text:
        characters.refuse_wide(look.head)
    found = spec.declared(look) if spec.declared is not None else None
    if look.complete and text:
        refuse_end(look.head, forced, forced=True, reading=look.reading)
    return found or Detected(forced)


def _certain(look: Look) -> Detected:
    head = look.head
    first = head[0]
    if first in _BLANK:
        after = _FIRST.match(head)
        if after is not None:
            first = after[1][0]
    if first != _BRACE:
        characters.refuse_binary(head, keep_nuls=look.reading.keep_nuls)
        if b"\n" not in head and b"\r" in head[:-1]:
            seen = "its lines end with CR alone"
            raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head, "")
    for recognise in BY_FIRST_BYTE[first]:
        found = recognise(look)
        if found is not None:
            return found
    # Content that begins with a brace is not tried as text.
    raise json_lines.no_lines(head, complete=look.complete)
