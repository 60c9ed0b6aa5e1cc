"""How the contents of a data set become its sources: partitions, names, line ends and the like."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.foreign.tables import DataSet, Expected, Form, Row, Source
from tests.foreign.trial import DAYS
from tests.zoo.chance import Chance

Content = tuple[Row | None, list[Row]]
# Fewer prove no header.
_ENOUGH = 3
_ENDINGS = {",": ".csv", ";": ".csv", "|": ".csv", "\t": ".tsv"}


@dataclass(frozen=True)
class Place:
    """Where a source stands in its data set.

    Attributes:
        chance: of this source.
        number: of this source, from 0, through all partitions.
        count: how many sources there are.
        partition: its number, from 0.
        variant: of the data set: what may be one way or another is, by its remainder.
    """

    chance: Chance
    number: int
    count: int
    partition: int
    variant: int

    @property
    def last(self) -> bool:
        """No source comes after it."""
        return self.number == self.count - 1


Write = Callable[[Place], Content]


@dataclass(frozen=True)
class Layout:
    """How a data set is laid out.

    Attributes:
        each: sources of each partition.
        waves: in how many runs they arrive.
        forms: of its sources, in turns.
        ending: of their keys.
    """

    each: tuple[int, ...]
    waves: int
    forms: tuple[Form, ...]
    ending: str

    @property
    def plain(self) -> bool:
        """Three sources or more arrive together, all written alike, and in the usual way."""
        alike = len({one.end for one in self.forms}) == self.waves == 1
        usual = all(
            one.quoting == csv.QUOTE_MINIMAL and not one.blank and one.delimiter in ",\t"
            for one in self.forms
        )
        named = self.ending in {".csv", ".tsv"}
        return usual and alike and named and sum(self.each) >= _ENOUGH


def drawn_layout(chance: Chance, variant: int, delimiter: str = "") -> Layout:
    """The first variants are the plain ones: LF, then CRLF; the others are drawn."""
    each = tuple(chance.choice((1, 2, 3, 4, 6)) for _ in range(chance.choice((1, 1, 2, 3))))
    if variant < 2:
        end = ("\n", "\r\n")[variant]
        by = delimiter or ","
        return Layout((*each, 4), 1, (Form(by, end),), _ENDINGS[by])
    by = delimiter or chance.choice(",,,,,,;;\t\t|")
    kind = chance.choice(("lf", "lf", "lf", "crlf", "crlf", "mixed"))
    ends = {"lf": ["\n"], "crlf": ["\r\n"], "mixed": ["\n", "\r\n", "\n"]}[kind]
    usual = Form(
        by,
        ends[0],
        csv.QUOTE_ALL if chance.random() < 0.08 else csv.QUOTE_MINIMAL,
        bom=chance.random() < 0.06,
        blank=chance.random() < 0.03,
    )
    cut = chance.random() < 0.3
    forms = tuple(
        replace(usual, end=chance.choice(ends), ended=not (cut and chance.random() < 0.5))
        for _ in range(7)
    )
    ending = _ENDINGS[by] if chance.random() < 0.93 else chance.choice((".txt", "", ".dat"))
    waves = 2 if sum(each) > 4 and chance.random() < 0.2 else 1
    return Layout(each, waves, forms, ending + (".gz" if chance.random() < 0.06 else ""))


def laid_out(
    kind: str, write: Write, layout: Layout, variant: int, expected: Expected = Expected.EITHER
) -> DataSet:
    """A data set of this kind."""
    count = sum(layout.each)
    partitions = [number for number, some in enumerate(layout.each) for _ in range(some)]
    sources = []
    for number, partition in enumerate(partitions):
        chance = Chance(kind, variant, number, count)
        header, rows = write(Place(chance, number, count, partition, variant))
        sources.append(
            Source(
                path=f"{DAYS[partition]}{number:03}-{chance.hexes(8)}{layout.ending}",
                header=header,
                rows=tuple(rows),
                form=layout.forms[number % len(layout.forms)],
                wave=number % 3 // 2 if layout.waves > 1 else 0,
            )
        )
    certain = layout.plain and not _share_a_first_value(sources)
    return DataSet(kind, tuple(sources), expected if certain else Expected.EITHER)


def _share_a_first_value(sources: list[Source]) -> bool:
    """Sources without a header happen to begin with a value that is equal, as headers may be."""
    firsts = [one.first for one in sources if one.header is None]
    return any(len(set(column)) < len(column) for column in zip(*firsts, strict=False))
