"""Lines of AWS logs as records: their columns, and their fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats import Detected
from compactor.formats.log_fields import FURTHER, LOGS, cloudfront_names, flow_names, name_of_log
from compactor.formats.spec import malformed
from compactor.model import Format, QuarantineReason

# None is any blanks.
_DELIMITERS = {Format.VPC_FLOW.value: None, Format.CLOUDFRONT.value: "\t"}


class LogRecords(NamedTuple):
    """The records of one source.

    Attributes:
        log: ``vpc_flow``, ``cloudfront``, or the name of an access log's form.
        columns: their names.
        lines: the records.
    """

    log: str
    columns: tuple[str, ...]
    lines: Iterator[bytes]


def log_records(found: Detected, lines: Iterator[bytes]) -> LogRecords:
    """Return the records of lines of logs.

    Args:
        found: their format and header.
        lines: those that are not blank, without line ends.

    Raises:
        UnreadableSource: they are of no known log; or, while the records are read, there is
            another header or comment among them.
    """
    header = found.header.replace(b"\r", b"").split(b"\n") if found.header else []
    texts = [line.decode("utf-8", "replace") for line in header]
    if found.format is Format.VPC_FLOW:
        return LogRecords(found.format, tuple(flow_names(texts[0])), _below(header, lines))
    if found.format is Format.CLOUDFRONT:
        return LogRecords(found.format, tuple(cloudfront_names(texts)), _below(header, lines))
    first = next(lines, b"")
    name = name_of_log(first.decode("utf-8", "replace"))
    if not name:
        detail = "its lines are of no log whose fields are known, so they have no columns"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)
    return LogRecords(name, (*LOGS[name].names, FURTHER), chain([first], lines))


def is_log(kind: str) -> bool:
    """Return whether records of this kind are lines of a known log."""
    return kind in LOGS or kind in _DELIMITERS


def fields_of_line(line: str, log: str) -> list[str | None]:
    """Return the fields of a line, None for one without a value; none if it has another form."""
    if log in LOGS:
        return LOGS[log].values_of(line) or []
    return [None if text in {"", "-"} else text for text in line.split(_DELIMITERS[log])]


def _below(header: Sequence[bytes], lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in islice(lines, len(header), None):
        if line in header or line.startswith(b"#"):
            raise malformed("a line of its header, or another comment, stands among its records")
        yield line
