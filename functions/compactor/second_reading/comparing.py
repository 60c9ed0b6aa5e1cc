"""Compares sources with their part of an output: the same reader must see the same records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from compactor.second_reading.json_values import several_values
from compactor.second_reading.judging import BOM, Declared, judge
from compactor.second_reading.kinds import (
    HEADED,
    WHOLE,
    Kind,
    Reading,
    Seen,
    Tally,
    names_flow_fields,
)
from compactor.second_reading.reading import read
from compactor.second_reading.unpacking import NotReadable, plain


class Frame(msgspec.Struct, frozen=True):
    """The bytes around the slices of an output."""

    opening: bytes = b""
    closing: bytes = b""


@dataclass(slots=True, eq=False)
class Kept:
    """A source as it was fetched, and its slice of the output.

    Attributes:
        name: key of the source.
        raw: its bytes as stored.
        separator: bytes before its slice, unless it is the output's first.
        pieces: its slice of the plain output.
    """

    name: str
    raw: bytes
    separator: bytes
    pieces: Sequence[bytes | memoryview]
    _plain: bytes | None = field(default=None, repr=False)

    @property
    def slice(self) -> bytes:
        """The whole slice."""
        return b"".join(self.pieces)

    @property
    def plain(self) -> bytes:
        """The source's plain bytes, decompressed here again.

        Raises:
            NotReadable: they cannot be decompressed.
        """
        if self._plain is None:
            self._plain = plain(self.raw)
        return self._plain


class Difference(msgspec.Struct, frozen=True):
    """A difference between what readers see in sources and in their output.

    Attributes:
        sources: keys, in the order of the output.
        records_in: number of records in these sources.
        records_out: number of records in their part of the output.
        detail: how they were read, and what is wrong, in words.
    """

    sources: tuple[str, ...]
    records_in: int
    records_out: int
    detail: str

    @property
    def line(self) -> str:
        """The comparison in one line."""
        names = ", ".join(repr(name) for name in self.sources)
        counts = f"{self.records_in:,} records in, {self.records_out:,} out"
        return f"{names}: {counts}: {self.detail}"


#: Consecutive sources in an output, and whether another source follows the last.
Stretch = tuple[Sequence[Kept], bool]


def differences(
    stretches: Sequence[Stretch], frame: Frame, declared: Declared, *, alone: bool = False
) -> Iterator[Difference]:
    """Compare some sources of one output with their part of it.

    Args:
        stretches: the sources to compare; all of them are used to decide what is a header.
        frame: the output's frame.
        declared: what the settings declare.
        alone: the output consists of a single source.
    """
    sources = [one for stretch, _ in stretches for one in stretch]
    judged: dict[int, Reading] = {}
    for one in sources:
        try:
            judged[id(one)] = judge(one.plain, one.name, declared)
        except NotReadable as error:
            yield Difference((one.name,), 0, 0, f"no other reader can decompress it: {error}")
            return
    if alone and sources and _is_unchanged(sources[0], frame, judged[id(sources[0])]):
        return
    for reading in dict.fromkeys(judged.values()):
        yield from _Comparison(reading, judged, frame, declared).of(stretches)


def _is_unchanged(one: Kept, frame: Frame, reading: Reading) -> bool:
    found = frame.opening + one.slice + frame.closing
    wanted = one.plain.removeprefix(BOM)
    if reading.kind is Kind.JSON_STREAM and any(map(several_values, wanted.split(b"\n"))):
        # A reader of lines would see only the first value, or none.
        return False
    return found == wanted or (found == wanted + b"\n" and reading.kind is not Kind.BINARY)


class _Comparison:
    """Compares with one reader."""

    def __init__(
        self, reading: Reading, judged: dict[int, Reading], frame: Frame, declared: Declared
    ) -> None:
        self._reading = reading
        self._judged = judged
        self._frame = frame
        self._declared = declared

    def of(self, stretches: Sequence[Stretch]) -> Iterator[Difference]:
        concerned = [
            (sources, followed)
            for sources, followed in stretches
            if any(self._judged[id(one)] == self._reading for one in sources)
        ]
        seen = {
            id(one): read(self._reading, (one.plain,))
            for sources, _ in concerned
            for one in sources
        }
        header = header_of(list(seen.values()), self._reading, self._declared)
        for sources, followed in concerned:
            yield from self._compare(sources, [seen[id(one)] for one in sources], header)
            yield from self._open_ends(sources, seen, followed=followed)

    def _compare(
        self, sources: Sequence[Kept], seen: Sequence[Seen], header: tuple[str, ...] | None
    ) -> Iterator[Difference]:
        expected = Tally()
        for one in seen:
            expected = expected.plus(one.without(header))
        pieces = [self._frame.opening]
        for number, source in enumerate(sources):
            pieces += [source.separator if number else b"", source.slice]
        reading = self._reading.as_output(document_lines=self._declared.document_lines)
        found = read(reading, (*pieces, self._frame.closing))
        records = found.without(header)
        if records == expected and not found.fault:
            return
        detail = f"read as {reading.kind.value}"
        if found.fault:
            detail += f", {found.fault}"
        elif records.records == expected.records:
            detail += ", records are not the same"
        names = tuple(one.name for one in sources)
        yield Difference(names, expected.records, records.records, detail)

    def _open_ends(
        self, sources: Sequence[Kept], seen: dict[int, Seen], *, followed: bool
    ) -> Iterator[Difference]:
        for number, one in enumerate(sources):
            saw = seen[id(one)]
            has_next = followed or number + 1 < len(sources)
            wrong = saw.open_end or (saw.fault if self._reading.kind not in WHOLE else "")
            if has_next and wrong and self._judged[id(one)] == self._reading:
                ends = f"it ends {wrong}" if saw.open_end else wrong
                detail = f"{ends}, and another source follows it"
                yield Difference((one.name,), saw.records.records, saw.records.records, detail)


def header_of(seen: Sequence[Seen], reading: Reading, declared: Declared) -> tuple[str, ...] | None:
    """Return the first row if it is a header, as declared or with certainty; else None."""
    if reading.kind not in HEADED:
        return None
    if reading.kind is Kind.LIST:
        # Lists share an output only if their fields are the same in all of them.
        found = {one.first for one in seen if one.first is not None}
        return found.pop() if len(found) == 1 else None
    if reading.kind is Kind.TABLE:
        first = next((one.first for one in seen if one.first is not None), None)
        return first if declared.has_header else None
    if reading.kind is Kind.FLOW and declared.format == "vpc_flow":
        return next((one.first for one in seen if one.first is not None), None)
    first_rows = {one.first for one in seen if one.first is not None}
    header = first_rows.pop() if len(first_rows) == 1 else ()
    return header if names_flow_fields(header) else None
