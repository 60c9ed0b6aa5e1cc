"""Shapes of CSV that were seen in the wild, each once with all it takes to misread it.

Three lists: rows without a header that begin with words, headers made of numbers, and the rest,
which has a function each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.foreign.laying import Content, Layout, Place, Write, drawn_layout, laid_out
from tests.foreign.tables import DataSet, Expected, Row
from tests.zoo.chance import Chance

_RowOf = Callable[[Chance], Row]


@dataclass(frozen=True)
class Shape:
    """One kind of data set.

    Attributes:
        write: one source of it.
        expected: what must become of it where it is laid out plainly.
        layout: None for one that is drawn.
        delimiter: empty for a drawn one.
    """

    name: str
    write: Write
    expected: Expected = Expected.EITHER
    layout: Callable[[Chance], Layout] | None = None
    delimiter: str = ""

    def data_set(self, variant: int) -> DataSet:
        """One data set; equal for equal variants, in every process."""
        chance = Chance(self.name, variant, -1, 0)
        if self.layout is not None:
            layout = self.layout(chance)
        else:
            layout = drawn_layout(chance, variant, self.delimiter)
        return laid_out(self.name, self.write, layout, variant, self.expected)


SHAPES: dict[str, Shape] = {}


def _put(shape: Shape) -> None:
    if shape.name in SHAPES:
        raise ValueError(f"two shapes are called {shape.name!r}")
    SHAPES[shape.name] = shape


def shape(
    name: str,
    *,
    expected: Expected = Expected.EITHER,
    layout: Callable[[Chance], Layout] | None = None,
    delimiter: str = "",
) -> Callable[[Write], Write]:
    """The function below writes one source of a data set of this name."""

    def put(write: Write) -> Write:
        _put(Shape(name, write, expected, layout, delimiter))
        return write

    return put


def some(chance: Chance, row: _RowOf, low: int = 1, high: int = 6) -> list[Row]:
    """So many rows."""
    return [row(chance) for _ in range(chance.randint(low, high))]


# Rows without a header, the first of them words.

_WORDS_FIRST: dict[str, tuple[Row, _RowOf]] = {
    "a pump that is offline": (
        ("pump7", "offline"),
        lambda c: (f"pump{c.randrange(9)}", f"{c.random() * 90:.1f}"),
    ),
    "a rate while the market is closed": (
        ("EURUSD", "closed"),
        lambda c: (c.choice(("EURUSD", "GBPUSD", "USDJPY")), f"{1 + c.random():.4f}"),
    ),
    "a user who logs in": (
        ("alice", "login"),
        lambda c: (c.word(), str(c.randrange(1, 999))),
    ),
    "START": (
        ("START", "", ""),
        lambda c: (c.iso(), f"{c.randrange(99)}", f"{c.random():.2f}"),
    ),
    "START and words": (
        ("START", "of", "day"),
        lambda c: (c.at("%H:%M:%S"), f"{c.randrange(99)}", f"{c.random():.2f}"),
    ),
    "a sensor that is not ready": (
        ("boiler", "warming up", "n/a"),
        lambda c: (c.word(), f"{c.randrange(40, 99)}", f"{c.random():.2f}"),
    ),
    "a valve and its state": (
        ("valve", "open"),
        lambda c: (c.word(), str(c.randrange(100))),
    ),
    "a flight that is cancelled": (
        ("LH", "cancelled", "none"),
        lambda c: (c.choice(("LH", "BA", "AF")), str(c.randrange(99, 999)), c.at("%H:%M")),
    ),
    "a grade of a pupil": (
        ("anna", "absent"),
        lambda c: (c.word(), f"{c.randint(1, 6)}"),
    ),
    "a meter that has no reading": (
        ("meter", "missing", "unknown"),
        lambda c: (f"m{c.randrange(99)}", f"{c.randrange(9999)}", c.at("%Y-%m-%d")),
    ),
    "a player who does not start": (
        ("Smith", "DNS"),
        lambda c: (c.word().title(), f"{9 + c.random() * 3:.2f}"),
    ),
    "a shop that is shut": (
        ("Berlin", "geschlossen"),
        lambda c: (c.choice(("Berlin", "Wien", "Köln")), f"{c.randrange(9999)}"),
    ),
    "a river without a gauge": (
        ("Loire", "nd", "en panne"),
        lambda c: (c.word().title(), f"{c.random() * 9:.2f}", c.at("%Y-%m-%d")),
    ),
    "a job that is queued": (
        ("nightly", "queued", "pending"),
        lambda c: (c.word(), f"{c.randrange(9999)}", f"{c.random() * 60:.1f}"),
    ),
    "a stock that is suspended": (
        ("ACME", "suspended", "halted"),
        lambda c: (c.word().upper()[:4], f"{c.random() * 90:.2f}", f"{c.randrange(9999)}"),
    ),
    "a device that boots": (
        ("boot", "ok", "cold"),
        lambda c: (str(c.unix()), f"{c.random() * 40:.1f}", f"{c.random() * 99:.0f}"),
    ),
    "an address that is unknown": (
        ("gateway", "down"),
        lambda c: (c.ip(), f"{c.randrange(200)}"),
    ),
    "names alone": (
        ("Paris", "France"),
        lambda c: (c.word().title(), c.word().title()),
    ),
}


def _words_first(first: Row, row: _RowOf) -> Write:
    """Some sources begin with the words, those of one partition, or all of them but one."""

    def write(place: Place) -> Content:
        chance = place.chance
        rows = some(chance, row)
        begins = (chance.random() < 0.5, place.partition == 0, not place.last)[place.variant % 3]
        if begins:
            rows.insert(0, first)
        if place.variant % 5 == 4:
            rows.append(first)
        return None, rows

    return write


for _name, (_first, _row) in _WORDS_FIRST.items():
    _put(Shape(f"no header, first {_name}", _words_first(_first, _row)))

# Headers made of numbers, or of what else reads as a value.


def _number(chance: Chance) -> str:
    return chance.choice((f"{chance.random() * 99:.2f}", str(chance.randrange(99)), ""))


def _share(chance: Chance) -> str:
    return f"{chance.random():.3f}"


def _level(chance: Chance) -> str:
    return f"{chance.random() * 90:.2f}"


def _word(chance: Chance) -> str:
    return chance.word()


_NUMERIC: dict[str, tuple[Row, Callable[[Chance], str] | None, Callable[[Chance], str]]] = {
    "octave bands": (("31.5", "63", "125", "250", "500", "1000"), None, _number),
    "octave bands of sites": (("site", "63", "125", "250", "500"), _word, _number),
    "maturities": (
        ("date", "0.25", "0.5", "1", "2", "5", "10", "30"),
        lambda c: c.at("%Y-%m-%d"),
        _share,
    ),
    "maturities alone": (("1", "2", "5", "10", "30"), None, _share),
    "sieve sizes": (("0.063", "0.125", "0.25", "0.5", "1", "2", "4"), None, _number),
    "sieve sizes of samples": (
        ("0", "0.063", "0.25", "4"),
        lambda c: str(c.randrange(99)),
        _number,
    ),
    "wavelengths": (("350", "351", "352", "353"), None, _share),
    "wavelengths of samples": (("sample", "400.5", "410.5", "420.5"), _word, _share),
    "times of day": (("00:00", "06:00", "12:00", "18:00"), None, _number),
    "times of day of sensors": (("sensor", "00:00", "08:00", "16:00"), _word, _number),
    "addresses": (("10.0.0.1", "10.0.0.2", "10.0.0.3"), None, _number),
    "addresses by time": (("ts", "10.0.0.1", "10.0.0.2"), lambda c: c.iso(), _number),
    "years": (("host", "2024", "2025"), _word, lambda c: str(c.randrange(99))),
    "years over years": (("2019", "2020", "2021"), None, lambda c: str(c.randrange(1990, 2030))),
    "dates": (("region", "2020-01-22", "2020-01-23"), _word, lambda c: str(c.randrange(999))),
    "quantiles": (("0.5", "0.9", "0.99", "1"), None, _share),
    "an index": (("", "0", "1", "2"), lambda c: str(c.randrange(9)), _share),
    "ports": (("22", "80", "443"), None, lambda c: str(c.randrange(999))),
    "UUIDs": (
        ("3b241101-e2bb-4255-8caf-4136c566a962", "3b241101-e2bb-4255-8caf-4136c566a963"),
        None,
        _number,
    ),
    "paths": (("/", "/login", "/health"), None, lambda c: str(c.randrange(999))),
    "percentages": (("5%", "50%", "95%"), None, lambda c: f"{c.randrange(99)}%"),
    "truth values": (("yes", "no"), None, lambda c: str(c.randrange(99))),
    "words over truth values": (("true", "false"), None, lambda c: c.choice(("true", "false"))),
    "months": (("Jan", "Feb", "Mar"), None, _number),
    "negative numbers": (("-2", "-1", "0", "1"), None, _number),
    "octave bands over levels": (("31.5", "63.0", "125.0", "250.0"), None, _level),
    "maturities over yields": (("0.25", "0.5", "1.0", "2.0", "5.0", "10.0"), None, _level),
    "sieve sizes over shares": (("0.063", "0.125", "0.5"), None, _share),
    "wavelengths over absorbances": (("350.0", "352.5", "360.0"), None, _share),
    "times of day over times": (
        ("06:00", "12:00", "18:00"),
        None,
        lambda c: c.choice((c.at("%H:%M"), "")),
    ),
    "addresses over addresses": (("10.0.0.1", "10.0.0.2"), None, lambda c: c.ip()),
    "dates over dates": (("2026-01-01", "2026-02-01"), None, lambda c: c.at("%Y-%m-%d")),
    "paths over paths": (("/src", "/dst"), None, lambda c: c.path()),
    "sites and times of day": (("site", "06:00", "12:00"), _word, lambda c: c.at("%H:%M")),
    "latitudes": (("lat", "-45.5", "0.0", "45.5"), _level, _level),
    "temperatures": (("depth", "-1.5", "-3.0"), lambda c: f"{c.randrange(9)}", _share),
}


def _numeric(header: Row, label: Callable[[Chance], str] | None, value: Callable[[Chance], str]):
    def row(chance: Chance) -> Row:
        values = [value(chance) for _ in header]
        if label is not None:
            values[0] = label(chance)
        if not any(values):
            values[-1] = "1"
        return tuple(values)

    def write(place: Place) -> Content:
        return header, some(place.chance, row)

    return write


for _name, _given in _NUMERIC.items():
    _put(Shape(f"header of {_name}", _numeric(*_given)))
