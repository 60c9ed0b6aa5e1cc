"""Data sets of CSV drawn at random: columns, header, first rows, and how sources differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.foreign.laying import Content, Place, drawn_layout, laid_out
from tests.foreign.structures import null, some
from tests.foreign.tables import DataSet, Row
from tests.zoo.chance import Chance

_VALUES: dict[str, Callable[[Chance], str]] = {
    "whole": lambda c: str(c.randrange(10 ** c.randint(1, 6))),
    "few": lambda c: str(c.randrange(4)),
    "fraction": lambda c: f"{c.random() * 99:.{c.randint(1, 4)}f}",
    "signed": lambda c: f"{c.randrange(-50, 50)}",
    "scientific": lambda c: f"{c.random():.2e}",
    "comma": lambda c: f"{c.randrange(99)},{c.randrange(99):02}",
    "zeros": lambda c: f"{c.randrange(999):06}",
    "day": lambda c: c.at("%Y-%m-%d"),
    "moment": lambda c: c.at("%Y-%m-%d %H:%M:%S"),
    "iso": lambda c: c.iso(),
    "us day": lambda c: c.at("%m/%d/%Y"),
    "german day": lambda c: c.at("%d.%m.%Y"),
    "month": lambda c: c.at("%b %Y"),
    "time": lambda c: c.at("%H:%M"),
    "epoch": lambda c: str(c.unix()),
    "year": lambda c: str(c.randrange(1990, 2027)),
    "word": lambda c: c.word(),
    "name": lambda c: c.word().title(),
    "code": lambda c: c.word().upper()[:4],
    "numbered": lambda c: f"{c.word()}{c.randrange(20)}",
    "host": lambda c: c.host(),
    "words": lambda c: c.words(),
    "sentence": lambda c: f"{c.words()}, {c.words(1, 2)}; {c.word()}.",
    "lines": lambda c: f"{c.word()}\n{c.words(1, 3)}",
    "quotes": lambda c: f'say "{c.word()}"',
    "status": lambda c: c.choice(("OK", "FAILED", "offline", "closed", "START", "login")),
    "level": lambda c: c.level(),
    "truth": lambda c: c.choice(("true", "false")),
    "yes": lambda c: c.choice(("yes", "no", "")),
    "null": null,
    "empty": lambda c: "",
    "address": lambda c: c.ip(),
    "uuid": lambda c: c.id(),
    "hex": lambda c: c.hexes(32),
    "mail": lambda c: f"{c.word()}@example.com",
    "path": lambda c: c.path(),
    "url": lambda c: f"https://example.com{c.path()}",
    "money": lambda c: f"${c.random() * 99:.2f}",
    "percent": lambda c: f"{c.randrange(100)}%",
    "japanese": lambda c: c.choice(("東京", "大阪", "京都")),
    "russian": lambda c: c.choice(("открыт", "закрыт", "нет")),
    "pair": lambda c: f"{c.word()}={c.randrange(9)}",
    "json": lambda c: f'{{"{c.word()}": {c.randrange(9)}}}',
    "padded": lambda c: f" {c.word()} ",
}
_KINDS = tuple(_VALUES)
_SPOILT = 0.05
_MEASURES = ("whole", "fraction", "moment", "day", "few", "epoch", "signed", "year")


@dataclass(frozen=True)
class _Table:
    """What the sources of one data set have in common.

    Attributes:
        header: None where there is none.
        kinds: of the columns' values.
        spoilt: a value of any column may be none of its kind.
        first: the row that sources begin with, some or all of them; None for any.
        always: all of them.
        odd: how one source differs from the others; empty for not at all.
        ordered: rows are.
    """

    header: Row | None
    kinds: tuple[str, ...]
    spoilt: bool
    first: Row | None
    always: bool
    odd: str
    ordered: bool

    def row(self, chance: Chance) -> Row:
        """One row."""
        values = [_VALUES[kind](chance) for kind in self.kinds]
        if self.spoilt and chance.random() < _SPOILT * len(values):
            values[chance.randrange(len(values))] = chance.choice(
                (null(chance), "offline", "closed", chance.word(), "0", "")
            )
        if not any(values):
            values[0] = "x"
        return tuple(values)

    def write(self, place: Place) -> Content:
        """One source."""
        chance = place.chance
        rows = some(chance, self.row, 0 if chance.random() < 0.05 else 1)
        rows = sorted(rows) if self.ordered else rows
        if self.first is not None and (self.always or chance.random() < 0.5):
            rows.insert(0, self.first)
        odd = place.last and self.odd
        if odd in _ODD:
            return _ODD[odd](self, chance, rows)
        return self.header, rows


def _names(kinds: tuple[str, ...]) -> Row:
    return tuple(f"{kind.replace(' ', '_')}_{n}" for n, kind in enumerate(kinds))


_ODD: dict[str, Callable[[_Table, Chance, list[Row]], Content]] = {
    "without": lambda one, c, rows: (None, rows),
    "with": lambda one, c, rows: (one.header or _names(one.kinds), rows),
    "again": lambda one, c, rows: (one.header, [*rows, one.header or one.row(c)]),
    "wider": lambda one, c, rows: (
        one.header and (*one.header, "more"),
        [(*row, "1") for row in rows],
    ),
    "turned": lambda one, c, rows: (one.header and one.header[::-1], [row[::-1] for row in rows]),
    "ragged": lambda one, c, rows: (one.header, [*rows, (*one.row(c), "x")]),
    "short": lambda one, c, rows: (one.header, [*rows, one.row(c)[:-1] or ("x",)]),
    "renamed": lambda one, c, rows: (one.header and ("other", *one.header[1:]), rows),
    "empty": lambda one, c, rows: (None, []),
    "bare": lambda one, c, rows: (one.header, []),
}


def _header(chance: Chance, kinds: tuple[str, ...]) -> Row:
    """Words most of the time, and else numbers, values, one name twice or none at all."""
    width = len(kinds)
    names = [
        f"{chance.word()}_{chance.word()}"[:20] if chance.random() < 0.5 else chance.word()
        for _ in range(width)
    ]
    sort = chance.random()
    if sort < 0.1:
        start, step = chance.choice((0, 1, 63, 350, 2019)), chance.choice((1, 1, 5, 0.5))
        names = [f"{start + n * step:g}" for n in range(width)]
        names[0] = chance.choice((names[0], "site", ""))
    elif sort < 0.16:
        values = [_VALUES[chance.choice(_KINDS)](chance) for _ in kinds]
        names = [value or "x" for value in values]
    elif sort < 0.2:
        names = [_VALUES[kind](chance) or "x" for kind in kinds]
    elif sort < 0.24:
        names[chance.randrange(width)] = chance.choice((names[0], ""))
    elif sort < 0.34:
        names = [name.upper() for name in names]
    if not any(names):
        names[0] = "x"
    return tuple(names)


def _first(chance: Chance, table: _Table) -> Row | None:
    """What sources begin with: any row, or one that is the same in some or in all of them."""
    sort = chance.random()
    if sort < 0.7:
        return None
    if sort < 0.8:
        return table.row(chance)
    words = [
        chance.choice(("START", "offline", "closed", "login", "begin", chance.word(), "", "0"))
        for _ in table.kinds
    ]
    return tuple(words) if any(words) else None


def drawn_set(seed: int, number: int) -> DataSet:
    """One data set; equal for equal arguments, in every process."""
    chance = Chance("drawn", seed, number, 0)
    width = chance.choice((1, 2, 2, 2, 3, 3, 4, 5, 7))
    pool = chance.choice((_KINDS, _KINDS, _MEASURES, ("word", "name", "status", "level", "host")))
    kinds = tuple(chance.choice(pool) for _ in range(width))
    headed = chance.random() < 0.5
    table = _Table(
        header=_header(chance, kinds) if headed else None,
        kinds=kinds,
        spoilt=chance.random() < 0.3,
        first=None,
        always=chance.random() < 0.4,
        odd=chance.choice(tuple(_ODD)) if chance.random() < 0.25 else "",
        ordered=chance.random() < 0.2,
    )
    table = replace(table, first=_first(chance, table))
    named = "header" if headed else "no header"
    odd = f", a source {table.odd}" if table.odd else ""
    first = ", equal first rows" if table.first is not None else ""
    columns = "one column" if width == 1 else "columns"
    kind = f"drawn: {columns}, {named}{first}{odd}"
    layout = drawn_layout(chance, number % 16)
    made = laid_out(f"drawn {seed} {number}", table.write, layout, number)
    return replace(made, kind=kind, name=f"drawn{number:04}")
