"""More shapes of CSV: one function each, most of them two or three ways to write one thing."""

from __future__ import annotations

import csv
from collections.abc import Callable

from tests.foreign.laying import Content, Layout, Place, Write
from tests.foreign.shapes import SHAPES, shape, some
from tests.foreign.tables import Expected, Form, Row
from tests.zoo.chance import Chance

__all__ = ["SHAPES", "null", "some"]

JOINED = Expected.JOINED
_TEXT = (
    "NULL;null;\\N;NA;N/A;#N/A;nan;NaN;none;None;nil;-;--;\u2013;?;(leer);keine Angabe;k. A.;n/d;"
    "sin dato;non disponible;нет;нет данных;无;不明;なし;غير متوفر;निर्दिष्ट नहीं;"
    "ei tietoa;brak;undefined;missing;"
)
_NULLS = _TEXT.split(";")
_ORDER: Row = ("order_id", "bought_by", "ordered_at", "amount")
_PLACE: Row = ("name", "city")


def order(chance: Chance) -> Row:
    return (
        str(chance.randrange(9999)),
        chance.word(),
        chance.at("%Y-%m-%d"),
        f"{chance.random() * 90:.2f}",
    )


def reading(chance: Chance) -> Row:
    return chance.at("%Y-%m-%d %H:%M:%S"), chance.host(), f"{chance.random() * 40:.2f}"


def words(chance: Chance) -> Row:
    return chance.word(), chance.word()


def null(chance: Chance) -> str:
    return chance.choice(_NULLS)


def headed(header: Row, row: Callable[[Chance], Row], low: int = 1) -> Write:
    return lambda place: (header, some(place.chance, row, low))


def unheaded(row: Callable[[Chance], Row], *first: Row) -> Write:
    return lambda place: (None, [*first, *some(place.chance, row)])


_PLAIN = Form()


def _few(*each: int, form: Form = _PLAIN) -> Callable[[Chance], Layout]:
    return lambda chance: Layout(each, 1, (form,), ".csv")


def _two_ends(*each: int) -> Callable[[Chance], Layout]:
    return lambda chance: Layout(each, 1, (Form(), Form(end="\r\n")), ".csv")


# Headers over values of other types.

shape("header", expected=JOINED)(headed(_ORDER, order))
shape("header, TSV", expected=JOINED, delimiter="\t")(headed(_ORDER, order))
shape("header, semicolons", delimiter=";")(headed(_ORDER, order))
shape("header, pipes", delimiter="|")(headed(_ORDER, order))
shape("header, CRLF, no last line end", layout=_few(4, 3, form=Form(end="\r\n", ended=False)))(
    headed(_ORDER, order)
)
shape("header, BOM", expected=JOINED, layout=_few(4, 3, form=Form(bom=True)))(headed(_ORDER, order))
shape("header, BOM, CRLF", expected=JOINED, layout=_few(4, 3, form=Form(bom=True, end="\r\n")))(
    headed(_ORDER, order)
)
shape("header, BOM in some", layout=lambda c: Layout((4, 3), 1, (Form(), Form(bom=True)), ".csv"))(
    headed(_ORDER, order)
)
shape("header, all quoted", layout=_few(4, 3, form=Form(quoting=csv.QUOTE_ALL)))(
    headed(_ORDER, order)
)
shape("header, line ends of two kinds", layout=_two_ends(6, 3))(headed(_ORDER, order))
shape(
    "header, quoted in some sources",
    layout=lambda c: Layout((6,), 1, (Form(), Form(quoting=csv.QUOTE_ALL)), ".csv"),
)(headed(_ORDER, order))
shape("header, named .txt", layout=lambda c: Layout((4, 3), 1, (Form(),), ".txt"))(
    headed(_ORDER, order)
)
shape("header, one source", layout=_few(1))(headed(_ORDER, order))
shape("header, two sources", layout=_few(2))(headed(_ORDER, order))
shape("header, a source a partition", layout=_few(1, 1, 1, 1))(headed(_ORDER, order))
shape("header, two sources of one partition, one of another", layout=_few(2, 1))(
    headed(_ORDER, order)
)
shape("header, many sources", layout=_few(20, 20))(headed(_ORDER, order))
shape(
    "header, delimiters of two kinds",
    layout=lambda c: Layout((8,), 1, (Form(","), Form(";")), ".csv"),
)(headed(_ORDER, order))
shape("header, names with blanks and units", expected=JOINED)(
    headed(
        ("Station Name", "Wind Speed (m/s)", "Temp. [°C]"),
        lambda c: (c.word(), f"{c.random() * 20:.1f}", f"{c.random() * 30:.1f}"),
    )
)
shape("header in German")(
    headed(
        ("Straße", "Größe", "Menge"), lambda c: (c.word(), f"{c.random():.2f}", str(c.randrange(9)))
    )
)
shape("header in Chinese")(
    headed(("日期", "名称", "数量"), lambda c: (c.at("%Y-%m-%d"), "苹果", str(c.randrange(9))))
)
shape("header, names with digits")(
    headed(("x1", "x2", "x3"), lambda c: tuple(f"{c.random():.3f}" for _ in range(3)))
)
shape("header in capitals")(
    headed(("OPEN", "HIGH", "LOW"), lambda c: tuple(f"{c.random() * 90:.2f}" for _ in range(3)))
)
shape("header that begins with #")(headed(("#", "name"), lambda c: (str(c.randrange(9)), c.word())))
shape("header with a delimiter in a name")(
    headed(("id", "last, first"), lambda c: (str(c.randrange(9)), f"{c.word()}, {c.word()}"))
)
shape("header with a line break in a name")(
    headed(("id", "name\n(long)"), lambda c: (str(c.randrange(9)), c.words()))
)
shape("header of many columns")(
    headed(
        tuple(f"m_{n}" for n in range(40)), lambda c: tuple(str(c.randrange(99)) for _ in range(40))
    )
)
shape("header, numeric IDs")(
    headed(("id", "ref"), lambda c: (f"{c.randrange(10**6):08}", f"{c.getrandbits(60)}"))
)
shape("header, a name that is a value, too")(
    headed(("key", "value"), lambda c: (c.choice(("key", "size")), str(c.randrange(9))))
)


@shape("header, quoted line breaks", expected=JOINED)
def _breaks(place: Place) -> Content:
    text = 'two\nlines, and "more"'
    return ("id", "at", "note"), some(
        place.chance, lambda c: (str(c.randrange(99)), c.at("%Y-%m-%d"), c.choice((text, c.word())))
    )


@shape("header, quoted line breaks of the other kind")
def _breaks_crlf(place: Place) -> Content:
    return ("id", "note"), some(
        place.chance, lambda c: (str(c.randrange(99)), c.choice(("a\r\nb", "c\nd", c.word())))
    )


@shape("header, a quoted text that holds the header")
def _held(place: Place) -> Content:
    return ("id", "note"), some(
        place.chance, lambda c: (str(c.randrange(99)), c.choice(("x\nid,note\ny", c.word())))
    )


@shape("header, again at the end of some sources")
def _again(place: Place) -> Content:
    return _ORDER, [*some(place.chance, order), *[_ORDER] * (place.number % 2)]


@shape("header, again at the end of every source")
def _again_each(place: Place) -> Content:
    return _ORDER, [*some(place.chance, order), _ORDER]


@shape("header, some sources without rows")
def _header_only(place: Place) -> Content:
    return _ORDER, some(place.chance, order) if place.number % 2 else []


shape("header and no row anywhere")(lambda place: (_ORDER, []))


@shape("header, some sources empty")
def _empty(place: Place) -> Content:
    return (None, []) if place.number % 3 == 1 else (_ORDER, some(place.chance, order))


shape("header, nulls in any language")(
    headed(("id", "name", "size"), lambda c: (str(c.randrange(99)), null(c), null(c)))
)
shape("header over nulls alone")(headed(("name", "size"), lambda c: (null(c), null(c) or "x")))
shape("header over words")(headed(_PLACE, words))
shape("header of duplicate names")(
    headed(("id", "name", "name"), lambda c: (str(c.randrange(9)), c.word(), c.word()))
)
shape("header with blank names")(
    headed(("id", "", ""), lambda c: (str(c.randrange(9)), c.word(), c.word()))
)


@shape("header, an index without a name", expected=JOINED)
def _index(place: Place) -> Content:
    rows = some(place.chance, words)
    return ("", "name", "size"), [(str(n), one, str(n * 7)) for n, (one, _) in enumerate(rows)]


_TRAILING: Row = ("login", "upload", "")
shape("header, lines that end in a delimiter")(headed(_TRAILING, lambda c: (c.iso(), c.ip(), "")))
shape("no header, equal first rows of lines that end in a delimiter")(
    unheaded(lambda c: (c.iso(), c.ip(), ""), _TRAILING)
)
shape("header, rows that are wider")(
    lambda place: (
        ("id", "name"),
        some(place.chance, lambda c: (str(c.randrange(9)), c.word(), *[c.word()] * c.randrange(2))),
    )
)
shape("header, rows that are narrower")(
    lambda place: (
        ("id", "name", "at"),
        some(place.chance, lambda c: (str(c.randrange(9)), c.word(), c.iso())[: c.randint(2, 3)]),
    )
)


# Sources that differ from the others.


def _unlike(header: Row, row: Callable[[Chance], Row], change: Callable[[Row], Row]) -> Write:
    """One source, the first or the last, has other columns."""

    def write(place: Place) -> Content:
        rows = some(place.chance, row)
        if place.last if place.variant % 2 else not place.number:
            return change(header), [change(one) for one in rows]
        return header, rows

    return write


def _wider(one: Row) -> Row:
    return (*one, "extra" if one[0].isalpha() or "_" in one[0] else "1")


def _narrower(one: Row) -> Row:
    return one[:-1]


def _reordered(one: Row) -> Row:
    return (one[1], one[0], *one[2:])


for _about, _change in (
    ("one column more", _wider),
    ("one column less", _narrower),
    ("columns in another order", _reordered),
):
    shape(f"header, a source with {_about}")(_unlike(_ORDER, order, _change))
    shape(f"header over words, a source with {_about}")(
        _unlike(("name", "city", "land"), lambda c: (*words(c), c.word()), _change)
    )


@shape("header, another one from a partition on")
def _changes(place: Place) -> Content:
    header = ("order_id", "bought_by", "ordered_on", "total") if place.partition else _ORDER
    return header, some(place.chance, order)


@shape("header, other capitals in some")
def _capitals(place: Place) -> Content:
    header = tuple(name.upper() for name in _ORDER) if place.number % 2 else _ORDER
    return header, some(place.chance, order)


@shape("header over words, other capitals in each")
def _capitals_words(place: Place) -> Content:
    forms = (str.lower, str.upper, str.title)
    return tuple(map(forms[place.number % 3], _PLACE)), some(place.chance, words)


@shape("header, one source without")
def _one_without(place: Place) -> Content:
    return None if place.last else _ORDER, some(place.chance, order)


@shape("header, one source without that begins with words")
def _one_without_words(place: Place) -> Content:
    if place.last:
        return None, [("none", "closed", "holiday", "nil"), *some(place.chance, order)]
    return _ORDER, some(place.chance, order)


@shape("header over words, one source without")
def _one_without_of_words(place: Place) -> Content:
    return None if place.last else _PLACE, some(place.chance, words)


@shape("no header, one source with")
def _one_with(place: Place) -> Content:
    return ("seen_at", "host", "load") if place.last else None, some(place.chance, reading)


@shape("no header, one source with, over words")
def _one_with_words(place: Place) -> Content:
    return _PLACE if place.last else None, some(place.chance, words)


@shape("no header, half of the sources with")
def _half_with(place: Place) -> Content:
    header = ("seen_at", "host", "load") if place.number % 2 else None
    return header, some(place.chance, reading)


@shape("no header, the sources of a partition with")
def _partition_with(place: Place) -> Content:
    header = None if place.partition else ("seen_at", "host", "load")
    return header, some(place.chance, reading)


@shape("two tables, headers over types")
def _two(place: Place) -> Content:
    if place.number % 2:
        return _ORDER, some(place.chance, order)
    return ("user_id", "joined_at"), some(
        place.chance, lambda c: (str(c.randrange(99)), c.at("%Y-%m-%d"))
    )


@shape("two tables of one width, headers over words")
def _two_of_words(place: Place) -> Content:
    return (_PLACE, ("fruit", "colour"))[place.number % 2], some(place.chance, words)


@shape("as many tables as sources, headers over words")
def _each_its_own(place: Place) -> Content:
    return (f"{place.chance.word()} name", place.chance.word()), some(place.chance, words)


# Rows alone.

shape("no header", expected=JOINED)(unheaded(reading))
shape("no header, TSV", expected=JOINED, delimiter="\t")(unheaded(reading))
shape("no header, CRLF, no last line end", layout=_few(4, 3, form=Form(end="\r\n", ended=False)))(
    unheaded(reading)
)
shape("no header, line ends of two kinds", layout=_two_ends(6, 3))(unheaded(reading))
shape("no header, BOM", layout=_few(4, 3, form=Form(bom=True)))(unheaded(reading))
shape("no header, one source", layout=_few(1))(unheaded(reading))
shape("no header, two sources", layout=_few(2))(unheaded(reading))
shape("no header, many sources", layout=_few(20, 20))(unheaded(reading))
shape("no header, a source a partition", layout=_few(1, 1, 1, 1))(unheaded(reading))
shape("no header, numbers")(unheaded(lambda c: (str(c.unix()), f"{c.random():.3f}")))
shape("no header, numeric IDs")(unheaded(lambda c: (str(c.randrange(9)), str(c.randrange(9)))))
shape("no header, leading zeros")(unheaded(lambda c: (f"{c.randrange(999):05}", c.word())))
shape("no header, UUIDs")(unheaded(lambda c: (c.id(), c.word())))
shape("no header, words")(unheaded(words))
shape("no header, words, one source", layout=_few(1))(unheaded(words))
shape("no header, words, two sources", layout=_few(2))(unheaded(words))
shape("no header, status words")(
    unheaded(lambda c: (c.host(), c.choice(("OK", "FAILED")), c.choice(("healthy", "ill"))))
)
shape("no header, sentences")(unheaded(lambda c: (c.words(), f"{c.words()}, {c.words()}.")))
shape("no header, quoted line breaks")(
    unheaded(lambda c: (c.iso(), c.choice(("a\nb", f"{c.word()}\n\n2026,x", c.word()))))
)
shape("no header, a server's log")(
    unheaded(
        lambda c: (
            c.at("%Y-%m-%d %H:%M:%S.%3 UTC"),
            c.word(),
            "db",
            str(c.randrange(99)),
            "ERROR",
            "42P01",
            f'relation "{c.word()}" does not exist',
            "",
            "",
        )
    )
)
shape("no header, nulls in any language")(unheaded(lambda c: (null(c), null(c) or "x", c.word())))
shape("no header, nulls first")(unheaded(reading, ("", "", "")))
shape("no header, words for nothing first")(unheaded(reading, ("NULL", "none", "unknown")))
shape("no header, truth values")(unheaded(lambda c: (c.choice(("true", "false")), c.word())))
shape("no header, addresses, equal first rows")(
    unheaded(lambda c: (c.ip(), "GET", c.path()), ("10.0.0.1", "GET", "/health"))
)
shape("no header, equal first rows with a time")(
    unheaded(reading, ("2026-01-01 00:00:00", "START", "0"))
)
shape("no header, equal first rows with a word that comes again")(
    unheaded(lambda c: (c.choice(("up", "down")), str(c.randrange(99))), ("up", "none"))
)
shape("no header, equal first rows of words over words")(unheaded(words, ("alpha", "first")))
shape("no header, equal first rows of words over numbers (nobody can tell)")(
    unheaded(lambda c: (str(c.randrange(99)), f"{c.random():.2f}"), ("begin", "zero"))
)
shape("no header, the first row twice")(
    lambda place: (None, [one := reading(place.chance), one, *some(place.chance, reading)])
)
shape("no header, one row again and again")(
    lambda place: (None, [("web-1", "OK", "healthy")] * (1 + place.number % 3))
)
shape("no header, one row of words a source")(lambda place: (None, [words(place.chance)]))
shape("no header, first rows equal within a partition")(
    lambda place: (None, [(f"part{place.partition}", "opened"), *some(place.chance, words)])
)
shape("no header, sorted, most begin alike")(
    lambda place: (
        None,
        sorted([("aaa", "0"), *some(place.chance, lambda c: (c.word(), str(c.randrange(99))))])[
            place.number % 5 == 4 :
        ],
    )
)
shape("no header, rows of changing width")(
    unheaded(lambda c: (c.iso(), *[c.word() for _ in range(c.randint(1, 3))]))
)
shape("no header, cells with names")(
    unheaded(lambda c: (f"level={c.level()}", f"user={c.word()}", f"n={c.randrange(9)}"))
)
shape("no header, JSON in cells")(
    unheaded(lambda c: (c.iso(), f'{{"a": {c.randrange(9)}, "b": "x"}}'))
)
shape("no header, blanks around")(unheaded(lambda c: (f" {c.randrange(9)}", f" {c.word()} ")))
shape("no header, empty sources among them")(
    lambda place: (None, some(place.chance, reading) if place.number % 3 else [])
)


# Headers made of numbers that are other ones in each source.


def _over(header: Callable[[Chance], Row], value: Callable[[Chance], str]) -> Write:
    def write(place: Place) -> Content:
        names = header(place.chance)
        return names, some(place.chance, lambda c: tuple(value(c) for _ in names), 5, 9)

    return write


def _years(chance: Chance) -> Row:
    first = chance.randrange(1950, 2020)
    return tuple(str(first + n) for n in range(3))


def _bins(chance: Chance) -> Row:
    step = chance.randrange(1, 50)
    return tuple(str(step * n) for n in range(1, 5))


shape("header, years, other ones in each source", layout=_few(6, 4))(
    _over(_years, lambda c: f"{c.random() * 99:.2f}")
)
shape("header, a name and a year, other ones in each source", layout=_few(6, 4))(
    lambda place: (
        (f"site{place.number}", str(2000 + place.number)),
        some(place.chance, lambda c: (c.word(), f"{c.random() * 9:.1f}"), 5, 9),
    )
)
shape("header, bins above counts, other ones in each source", layout=_few(6, 4))(
    _over(_bins, lambda c: str(c.randrange(200)))
)
shape("header, months above days, other ones in each source", layout=_few(6, 4))(
    lambda place: (
        (f"2026-{place.number + 1:02}", f"2027-{place.number + 1:02}"),
        some(place.chance, lambda c: (c.at("%Y-%m-%d"), c.at("%Y-%m-%d")), 5, 9),
    )
)
shape("no header, shares and sums", layout=_few(6, 4))(
    lambda place: (
        None,
        some(
            place.chance,
            lambda c: (c.host(), f"{c.random():.3g}", str(c.randrange(99)), str(c.unix())),
            20,
            30,
        ),
    )
)
shape("decimal commas", delimiter=";")(
    headed(("ort", "wert"), lambda c: (c.word(), f"{c.randrange(9)},{c.randrange(99):02}"))
)
shape("decimal commas, no header", delimiter=";")(
    unheaded(lambda c: (c.word(), f"{c.randrange(9)},{c.randrange(99):02}"))
)

# One column.

shape("one column, header over addresses", delimiter=",")(
    headed(("email",), lambda c: (f"{c.word()}@example.com",))
)
shape("one column, header over numbers", delimiter=",")(
    headed(("reading",), lambda c: (str(c.randrange(99)),))
)
shape("one column, header over words", delimiter=",")(headed(("name",), lambda c: (c.word(),)))
shape("one column, no header, numbers", delimiter=",")(unheaded(lambda c: (str(c.randrange(99)),)))
shape("one column, no header, words", delimiter=",")(unheaded(lambda c: (c.word(),)))
shape("one column, no header, sentences with commas", delimiter="|")(
    unheaded(lambda c: (f"{c.words()}, {c.words()}",))
)
shape("one column, no header, equal first rows", delimiter=",")(
    unheaded(lambda c: (c.word(),), ("healthy",))
)
