"""Data sets of CSV, JSON and text, with the truth of what is in them and their declarations.

The truth is written down before the bytes are: records, whether a header stands above them, and how
they are written. Nothing of the product is asked or imported here.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.zoo.chance import Chance

BOM = b"\xef\xbb\xbf"
Row = tuple[str, ...]
Record = Row | str


@dataclass(frozen=True)
class Form:
    """How records are written: what a reader has to know.

    Attributes:
        format: csv, text, json (on lines), array, or trail (CloudTrail's documents).
        header: the first record of CSV names the columns.
        delimiter: of CSV, one character.
        quotes: fields of CSV may be in double quotes.
        backslash: a backslash escapes the next character of CSV.
        all_quoted: every field is in quotes, so that headers of other sources differ in bytes.
        end: of lines.
        encoding: of characters.
    """

    format: str
    header: bool = False
    delimiter: str = ","
    quotes: bool = True
    backslash: bool = False
    all_quoted: bool = False
    end: str = "\n"
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Source:
    """One source and the truth of it.

    Attributes:
        body: its plain bytes.
        records: every record that is no header.
        header: the first record, if it is no row.
        form: how they are written.
        refused: for what it contradicts its declaration; empty if it does not.
    """

    body: bytes
    records: tuple[Record, ...]
    form: Form
    header: Row | None = None
    refused: str = ""

    @property
    def group(self) -> tuple[object, ...]:
        """Sources of equal groups share an output."""
        first = (self.header,) if self.header is not None else self.records[:1]
        if self.form.format != "csv":
            return (self.form.format,)
        # One record without its line end shows none.
        end = self.form.end.encode()
        several = len(self.records) > (self.header is None)
        shows_end = several or self.body.endswith(end) or self.body.startswith(end)
        return self.header, len(first[0]) if first else 0, self.form.end if shows_end else "\n"


@dataclass(frozen=True)
class DataSet:
    """The sources of one declaration.

    Attributes:
        kind: as the figures call it.
        ending: of its keys.
        declared: its entry in ``formats`` without the pattern; None if it needs none.
        sources: in the order of their keys.
        packed: they are compressed.
    """

    kind: str
    ending: str
    declared: Mapping[str, Any] | None
    sources: tuple[Source, ...]
    packed: bool = False

    @property
    def output_form(self) -> Form:
        """How the records of an output are written."""
        form = self.sources[0].form
        is_lines = self.declared is not None and self.declared["format"].endswith("_lines")
        return replace(form, format="json") if is_lines else form


_VALUES: tuple[Callable[[Chance], str], ...] = (
    lambda c: str(c.randrange(10 ** c.randint(1, 6))),
    lambda c: str(c.randrange(4)),
    lambda c: f"{c.random() * 99:.{c.randint(1, 4)}f}",
    lambda c: f"{c.random():.2e}",
    lambda c: f"{c.randrange(99)},{c.randrange(99):02}",
    lambda c: f"{c.randrange(999):06}",
    lambda c: c.at("%Y-%m-%d"),
    lambda c: c.at("%d.%m.%Y %H:%M"),
    Chance.iso,
    Chance.word,
    Chance.words,
    Chance.id,
    Chance.ip,
    lambda c: f"{c.words()}, {c.words(1, 2)}; {c.word()}.",
    lambda c: f"{c.word()}\n{c.words(1, 3)}",
    lambda c: f"{c.word()}\r\n\r\n{c.word()}",
    lambda c: f'say "{c.word()}"',
    lambda c: f'{c.randrange(9)}" disk',
    lambda c: c.choice(("", '"', '""', ",", " ", "\\", "\\N", "NULL", "#", "'", "true", "-")),
    lambda c: c.choice(("東京", "Grüße", "открыт", "😀", "\x85", "\u2028")),
    lambda c: f"{c.word()}|{c.word()};{c.word()}\t{c.word()}",
    lambda c: f'{{"{c.word()}": {c.randrange(9)}}}',
    lambda c: f" {c.word()} ",
    lambda c: f"C:\\{c.word()}\\",
    lambda c: c.choice(("START", "offline", "id", "name")),
)
_SINGLE_BYTE = ("é", "Grüße", "50 °", "\xa0", "¿")
_WIDTHS = (1, 2, 2, 3, 3, 4, 6)
# In a quarter of the data sets, one source differs.
_ODD = (
    *("wider", "ragged", "renamed", "upper", "turned", "repeated", "other end", "open", "cut"),
    *("quoted in part", "mixed ends", "lone CR", "blank lines"),
)


def csv_set(chance: Chance) -> DataSet:
    """Sources of CSV with or without a header, in one dialect."""
    form = Form(
        "csv",
        header=chance.random() < 0.5,
        delimiter=chance.choice(",,,,;\t\t|\x01"),
        quotes=chance.random() < 0.85,
        backslash=chance.random() < 0.12,
        all_quoted=chance.random() < 0.1,
        end=chance.choice(("\n", "\n", "\r\n")),
        encoding=chance.choice(("utf-8",) * 9 + ("latin-1",)),
    )
    columns = [chance.choice(_VALUES) for _ in range(chance.choice(_WIDTHS))]
    header = _header(chance, columns, form) if form.header else None
    always = chance.random() < 0.1
    first = _row(chance, columns, form)
    odd = chance.choice(_ODD) if chance.random() < 0.25 else ""
    count = chance.choice((2, 3, 4, 6))
    sources = []
    for number in range(count):
        rows = [_row(chance, columns, form) for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 9)))]
        if always:
            rows.insert(0, first)
        differs = odd if number == count - 1 else ""
        sources.append(_csv_source(chance, form, header, rows, differs))
    declared: dict[str, Any] = {"format": "csv", "header": form.header}
    ending = ".csv"
    if form.delimiter == "\t" and chance.random() < 0.7:
        declared["format"], ending = "tsv", ".tsv"
    elif form.delimiter != ",":
        declared["delimiter"] = form.delimiter
    declared |= {"quote": "none"} if not form.quotes else {}
    declared |= {"escape": "backslash"} if form.backslash else {}
    declared |= {"encoding": "single_byte"} if form.encoding != "utf-8" else {}
    kind = ("CSV with a header" if form.header else "CSV without a header") + _named(form, odd)
    return DataSet(kind, ending, declared, tuple(sources))


def _named(form: Form, odd: str) -> str:
    quoting = "" if form.quotes else ", no quotes"
    return quoting + (", backslashes" if form.backslash else "") + (f", one {odd}" if odd else "")


def _row(chance: Chance, columns: list[Callable[[Chance], str]], form: Form) -> Row:
    row = [_fitting(chance, column(chance), form) for column in columns]
    # Readers skip a line of nothing.
    return tuple(row) if any(row) else ("x", *row[1:])


def _fitting(chance: Chance, value: str, form: Form) -> str:
    """The value, as far as the dialect can write it."""
    if form.encoding != "utf-8":
        value = value.encode("ascii", "ignore").decode()
        value += chance.choice(_SINGLE_BYTE) if chance.random() < 0.5 else ""
    if not form.quotes:
        value = value.replace("\r", "").replace("\n", " ")
        if not form.backslash:
            value = value.replace(form.delimiter, "/")
        # A reader that expects quotes would take them for some.
        value = value.replace('"', "'") if chance.random() < 0.5 else value
    return value


def _header(chance: Chance, columns: list[Callable[[Chance], str]], form: Form) -> Row:
    """Words most of the time; else values, numbers, equal names, or names in several lines."""
    sort = chance.random()
    names = [f"{chance.word()}_{number}" for number in range(len(columns))]
    if sort < 0.15:
        names = list(_row(chance, columns, form))
    elif sort < 0.25:
        names = [str(2019 + number) for number in range(len(columns))]
    elif sort < 0.3:
        names = [names[0]] * len(columns)
    elif sort < 0.36:
        names[-1] = _fitting(chance, "size\nin mm", form)
    return tuple(names)


def _csv_source(
    chance: Chance, form: Form, header: Row | None, rows: list[Row], odd: str
) -> Source:
    first = header or (rows[0] if rows else ())
    refused = ""
    if odd in _CONTENTS and first:
        header, rows, refused = _CONTENTS[odd](chance, header, rows or [first])
    elif odd == "other end":
        form = replace(form, end="\r\n" if form.end == "\n" else "\n")
    if header in rows and not refused:
        refused = "its header repeated"
    body = _csv_bytes(chance, form, [*([header] if header else []), *rows])
    source = Source(body, tuple(rows), form, header, refused)
    if odd in _BYTES and first and len(body) > 1 and not refused:
        return _BYTES[odd](chance, source, len(first))
    if chance.random() < 0.04 and form.encoding == "utf-8":
        return replace(source, body=BOM + body)
    return source


# How the contents of one source differ, and why it is refused for it.
_Contents = tuple[Row | None, list[Row], str]


def _ragged(chance: Chance, header: Row | None, rows: list[Row]) -> _Contents:
    if not header and len(rows) < 2:
        return header, rows, ""
    at = chance.randrange(0 if header else 1, len(rows))
    row = (*rows[at], "x") if len(rows[at]) < 2 or chance.random() < 0.5 else rows[at][:-1]
    row = row if any(row) else ("x", *row[1:])
    return header, [*rows[:at], row, *rows[at + 1 :]], "a record of another width"


def _repeated(chance: Chance, header: Row | None, rows: list[Row]) -> _Contents:
    at = chance.randint(0, len(rows))
    return header, [*rows[:at], header, *rows[at:]] if header else rows, ""


_CONTENTS: dict[str, Callable[[Chance, Row | None, list[Row]], _Contents]] = {
    "wider": lambda _, h, rows: (h and (*h, "more"), [(*row, "1") for row in rows], ""),
    "ragged": _ragged,
    "renamed": lambda _, h, rows: (h and ("other", *h[1:]), rows, ""),
    "upper": lambda _, h, rows: (h and tuple(name.upper() for name in h), rows, ""),
    "turned": lambda _, h, rows: (h and h[::-1], rows, ""),
    "repeated": _repeated,
}

# How the bytes of one source differ; the number is that of its columns.


def _open(chance: Chance, source: Source, columns: int) -> Source:
    form, body = source.form, source.body
    quoted = chance.choice(('"cut', f'1{form.delimiter}"cut off', '"a\n\n1,2\n'))
    if not form.quotes or quoted.count(form.delimiter) >= columns:
        return source
    body = body if body.endswith(b"\n") else body + form.end.encode()
    return replace(source, body=body + quoted.encode(), refused="an open quote")


def _quoted_in_part(chance: Chance, source: Source, columns: int) -> Source:
    if not source.form.quotes:
        return source
    last = ['"a"b', *["1"] * (columns - 1)]
    chance.shuffle(last)
    return _with_line(source, source.form.delimiter.join(last), "text after a closing quote")


def _mixed_ends(chance: Chance, source: Source, columns: int) -> Source:
    del chance
    line = source.form.delimiter.join(["1"] * columns)
    other = b"\r\n" if source.form.end == "\n" else b"\n"
    twice = _with_line(source, line, "two kinds of line ends")
    return replace(twice, body=twice.body + line.encode() + other)


def _lone_cr(chance: Chance, source: Source, columns: int) -> Source:
    del chance
    line = source.form.delimiter.join(["a\rb", *["1"] * (columns - 1)])
    return _with_line(source, line, "a CR alone")


def _blank_lines(chance: Chance, source: Source, columns: int) -> Source:
    del columns
    end = source.form.end.encode()
    blank = end * chance.randint(1, 2)
    if chance.random() < 0.5:
        refused = "a blank line above its header" if source.header else ""
        return replace(source, body=blank + source.body, refused=refused)
    ended = source.body if source.body.endswith(b"\n") else source.body + end
    return replace(source, body=ended + blank)


def _with_line(source: Source, line: str, refused: str) -> Source:
    end = source.form.end.encode()
    body = source.body if source.body.endswith(b"\n") else source.body + end
    return replace(source, body=body + line.encode() + end, refused=refused)


def _cut(chance: Chance, source: Source, columns: int) -> Source:
    """A source that was cut off anywhere: what Python's csv sees of it is true."""
    del columns
    form, body = source.form, source.body[: chance.randrange(1, len(source.body))]
    try:
        records = python_rows(body, form)
    except (ValueError, csv.Error) as error:
        return Source(body, (), form, refused=str(error))
    if body.endswith(b"\r"):
        return Source(body, (), form, refused="a line end in two")
    header = records[0] if form.header and records else None
    refused = "a cut record" if len({len(row) for row in records}) > 1 else ""
    return Source(body, tuple(records[1:] if header else records), form, header, refused)


_BYTES: dict[str, Callable[[Chance, Source, int], Source]] = {
    "open": _open,
    "cut": _cut,
    "quoted in part": _quoted_in_part,
    "mixed ends": _mixed_ends,
    "lone CR": _lone_cr,
    "blank lines": _blank_lines,
}


def _csv_bytes(chance: Chance, form: Form, records: list[Row]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(
        out,
        delimiter=form.delimiter,
        lineterminator=form.end,
        quoting=_quoting(form),
        doublequote=not form.backslash,
        escapechar="\\" if form.backslash else None,
        quotechar='"' if form.quotes else None,
    )
    writer.writerows(records)
    text = out.getvalue()
    if chance.random() < 0.3:
        text = text.removesuffix(form.end)
    elif chance.random() < 0.05 and text:
        text += form.end * chance.randint(1, 2)
    return text.encode(form.encoding)


def _quoting(form: Form) -> Literal[0, 1, 3]:
    if not form.quotes:
        return csv.QUOTE_NONE
    return csv.QUOTE_ALL if form.all_quoted else csv.QUOTE_MINIMAL


def python_rows(body: bytes, form: Form) -> list[Row]:
    """The records of CSV, with its header, as Python's csv module reads them.

    Raises:
        ValueError, csv.Error: it cannot.
    """
    text = body.removeprefix(BOM).decode(form.encoding)
    records = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=form.delimiter,
        quoting=csv.QUOTE_MINIMAL if form.quotes else csv.QUOTE_NONE,
        doublequote=not form.backslash,
        escapechar="\\" if form.backslash else None,
        strict=True,
    )
    return [tuple(row) for row in records if row]


# JSON.


def _value(chance: Chance, depth: int = 0) -> Any:
    kind = chance.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [_value(chance, depth + 1) for _ in range(chance.randrange(3))]
    if kind == 8:
        return _object(chance, depth + 1)
    options: tuple[Any, ...] = (
        *(chance.randrange(10**9), -chance.random(), 10**20, 1.5e300, True, None),
        *("", '}{ "', "a\nb", "\\", "\u2028", "😀", "\x7f", "東京", chance.words(), chance.iso()),
    )
    return chance.choice(options)


def _object(chance: Chance, depth: int = 0) -> dict[str, Any]:
    # An object with records alone would be a document of CloudTrail.
    names = (chance.word(), 'quo"ted', "", "id", "Records" if depth else "n", "ключ")
    return {chance.choice(names): _value(chance, depth) for _ in range(chance.randint(0, 4))}


def _json(chance: Chance, value: Any, *, indent: int | None = None) -> str:
    compact = (",", ":") if chance.random() < 0.5 else None
    return json.dumps(value, indent=indent, separators=compact, ensure_ascii=chance.random() < 0.5)


def _torn(chance: Chance, source: Source, share: float = 0.06) -> Source:
    """In some cases, a source whose end is missing."""
    body = source.body.rstrip(b" \r\n")
    if chance.random() > share or len(body) < 3:
        return source
    if chance.random() < 0.5:
        strange = chance.choice((b"\n[1]\n", b"\nnull\n", b"\nx", b",", b"\n}\n", b"\0", b"\xff"))
        return Source(body + strange, (), source.form, refused="what is no object below it")
    return Source(body[:-1], (), source.form, refused="its end is missing")


def json_set(chance: Chance) -> DataSet:
    """Objects on lines, behind each other, in arrays, or in documents of CloudTrail."""
    kind = chance.choice(("lines", "lines", "undelimited", "array", "trail"))
    form = Form({"array": "array", "trail": "trail"}.get(kind, "json"))
    declared = {
        "lines": (None, {"format": "json_lines"}),
        "undelimited": (None, {"format": "undelimited_json"}),
        "array": (None, {"format": "json_array_lines"}),
        "trail": (None, {"format": "cloudtrail_lines"}),
    }[kind][chance.random() < 0.4]
    sources = []
    for _ in range(chance.choice((2, 3, 5))):
        values = [
            _object(chance) for _ in range(chance.randint(2 if kind == "undelimited" else 1, 5))
        ]
        body = _json_body(chance, kind, values).encode()
        truth = tuple(json.dumps(value, sort_keys=True) for value in values)
        sources.append(_torn(chance, Source(body, truth, form)))
    ending = chance.choice((".json", "", ".jsonl" if kind == "lines" else ".json"))
    name = f"JSON, {kind}" + (", declared" if declared else "")
    return DataSet(name, ending, declared, tuple(sources))


def _json_body(chance: Chance, kind: str, values: list[dict[str, Any]]) -> str:
    if kind == "array":
        return _json(chance, values, indent=chance.choice((None, 2)))
    if kind == "trail":
        return _json(chance, {"Records": values}, indent=chance.choice((None, 1)))
    texts = [_json(chance, value) for value in values]
    if kind == "undelimited":
        return chance.choice(("", " ")).join(texts)
    end = chance.choice(("\n", "\n", "\r\n"))
    return end.join(texts) + chance.choice((end, ""))


# Text.

_LINES: tuple[Callable[[Chance], str], ...] = (
    Chance.words,
    lambda c: f"{c.level()} {c.words()}",
    lambda c: f'"{c.word()}, {c.word()}',
    lambda c: f"{c.word()}\t{c.randrange(99)}\t",
    lambda c: f"\tat {c.word()}({c.randrange(99)})",
    lambda c: c.choice(
        ("", " ", "#", "---", '"', "Größe", "東京 😀", "\x1b[0m", "a\rb", "\x0c", "}{")
    ),
    lambda c: f"user={c.word()} {{{c.word()}}}",
)
_DATES = (
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S,%3",
    "%b %d %H:%M:%S",
    "[%d/%b/%Y:%H:%M:%S +0000]",
)


def text_set(chance: Chance) -> DataSet:
    """Lines: named as a log, dated, or declared, in UTF-8 or in an encoding of single bytes."""
    kind = chance.choice(("named", "dated", "declared", "declared, single_byte"))
    form = Form("text", encoding="latin-1" if "single" in kind else "utf-8")
    date = chance.choice(_DATES)
    end = chance.choice(("\n", "\n", "\r\n"))
    sources = []
    for _ in range(chance.choice((2, 3, 5))):
        texts = [chance.choice(_LINES)(chance) for _ in range(chance.randint(1, 9))]
        if kind == "dated":
            texts = [f"{chance.at(date)} {text}" for text in texts]
        elif kind == "named":
            # What begins with a brace or bracket is JSON or none.
            texts[0] = f"{chance.word()} {texts[0]}"
        if form.encoding != "utf-8":
            texts = [_latin(chance, text) for text in texts]
        text = end.join(texts)
        text += end if chance.random() < 0.7 or not texts[-1] else ""
        sources.append(_text_source(chance, text, form))
    ending = {"named": ".log", "dated": chance.choice(("", ".txt", ".out"))}.get(
        kind, chance.choice((".txt", "", ".dat", ".log"))
    )
    declared: dict[str, Any] | None = {"format": "text"} if "declared" in kind else None
    if declared and form.encoding != "utf-8":
        declared["encoding"] = "single_byte"
    return DataSet(f"text, {kind}", ending, declared, tuple(sources))


def _latin(chance: Chance, text: str) -> str:
    return text.encode("ascii", "ignore").decode() + chance.choice(_SINGLE_BYTE)


def _text_source(chance: Chance, text: str, form: Form) -> Source:
    body = text.encode(form.encoding)
    lines = tuple(text.removesuffix("\n").split("\n"))
    if "\r" in text and "\n" not in text:
        return Source(body, lines, form, refused="line ends of CR alone")
    if chance.random() < 0.03:
        return Source(body + b"\0\n", (), form, refused="a NUL byte")
    if chance.random() < 0.03 and form.encoding == "utf-8":
        return Source(body.rstrip(b"\n") + "ü".encode()[:1], (), form, refused="half a character")
    if chance.random() < 0.03:
        return Source(body.rstrip(b"\r\n") + b"\r", (), form, refused="a line end in two")
    if chance.random() < 0.03 and form.encoding == "utf-8":
        body = BOM + body
    return Source(body, lines, form)


def drawn_set(seed: int, number: int) -> DataSet:
    """One data set; equal for equal arguments, in every process."""
    chance = Chance("foreign", seed, number, 0)
    make = chance.choice((csv_set, csv_set, csv_set, json_set, text_set))
    return replace(make(chance), packed=chance.random() < 0.1)
