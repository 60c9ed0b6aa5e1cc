"""Each rule that leaves sources alone or keeps them apart: what a reader loses without it.

Nothing here looks at manifests, counts or verdicts. A reader of the format reads sources and
outputs.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from compactor.formats import (
    characters,
    cloudfront,
    csv_evidence,
    ends,
    first_record,
    json_lines,
    log_lines,
    separated_values,
    vpc_flow,
)
from compactor.formats import text as plain_text
from compactor.formats.first_record import Begin
from compactor.formats.known_formats import spec_of
from compactor.outputs.neighbours import Neighbours, SharedLines
from tests.support.world import World

Reader = Callable[[bytes], list[Any]]


def rows(body: bytes) -> list[Any]:
    """Of CSV without a header."""
    return [tuple(row) for row in csv.reader(io.StringIO(body.decode(), newline="")) if row]


def document(body: bytes) -> list[Any]:
    """The one JSON value of an object; what is none is told as it is."""
    try:
        return [json.dumps(json.loads(body), sort_keys=True)]
    except ValueError:
        return [body]


def whole(body: bytes) -> list[Any]:
    """One document to an object."""
    return [body.strip()]


def w3c(body: bytes) -> list[Any]:
    """Rows with the names that the #Fields: line above them gives."""
    names: list[bytes] = []
    found: list[Any] = []
    for line in body.splitlines():
        if line.startswith(b"#Fields:"):
            names = line.split()[1:]
        elif line and not line.startswith(b"#"):
            found.append(tuple(zip(names, line.split(), strict=False)))
    return found


def text(body: bytes) -> list[Any]:
    """Lines in UTF-8; what is in another encoding is told as it is."""
    try:
        return body.decode().splitlines()
    except UnicodeDecodeError:
        return [body]


def wide(body: bytes) -> list[Any]:
    """Lines in UTF-16, by its byte order mark."""
    try:
        return [line.strip("\ufeff") for line in body.decode("utf-16").splitlines()]
    except UnicodeDecodeError:
        return [body]


def json_values(body: bytes) -> list[Any]:
    """JSON values wherever they end, and what is left where one does not."""
    left = body.decode().lstrip()
    found: list[Any] = []
    while left:
        try:
            value, end = json.JSONDecoder().raw_decode(left)
        except ValueError:
            return [*found, left.rstrip()]
        found.append(repr(value))
        left = left[end:].lstrip()
    return found


def with_lengths(body: bytes) -> list[Any]:
    """Records behind two bytes that say how long they are."""
    found: list[Any] = []
    while body:
        end = 2 + int.from_bytes(body[:2], "big")
        if end > len(body):
            return [*found, body]
        found.append(body[2:end])
        body = body[end:]
    return found


def named(body: bytes) -> list[Any]:
    """Rows of CSV below their names, as spreadsheets read them."""
    lines = body.decode().splitlines()
    by = ","
    if lines[0].startswith("sep="):
        by = lines.pop(0)[4]
    return [tuple(row.items()) for row in csv.DictReader(lines, delimiter=by)]


def named_by_blanks(body: bytes) -> list[Any]:
    """Rows below their names, with blanks between."""
    names, *lines = body.decode().splitlines()
    return [tuple(zip(names.split(), line.split(), strict=True)) for line in lines]


def before_the_mark(body: bytes) -> list[Any]:
    """Lines to the end that DOS marks."""
    return body.partition(b"\x1a")[0].splitlines()


def below_names(body: bytes) -> list[Any]:
    """Rows of CSV, but for the names of columns above them."""
    found = rows(body)
    return found[1:] if found[:1] == [("id", "host")] else found


def by_first_line_end(body: bytes) -> list[Any]:
    """Rows below the names of columns, of lines that all end as the first one does."""
    end = b"\r\n" if body.partition(b"\n")[0].endswith(b"\r") else b"\n"
    return [line.split(b",")[-1] for line in body.split(end)[1:] if line]


class Guard(NamedTuple):
    """A rule, what takes it out, and sources of which a reader then sees something else."""

    rule: str
    without: Callable[[pytest.MonkeyPatch], None]
    sources: dict[str, bytes]
    reader: Reader
    given: Mapping[str, Any] = {}


def _no_quote_is_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(separated_values, "ends_within_quotes", lambda *_: False)


def _no_line_is_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedLines, "left_alone", lambda _: iter(()))


def _any_json_is_lines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_lines, "is_object", lambda _: True)
    patch.setattr(json_lines, "are_json_lines", lambda _: True)


def _no_json_is_a_document(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_lines, "document_in", lambda _: "")


def _no_action_is_deltas(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_lines, "is_delta_action", lambda _: False)


def _no_neighbour_is_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Neighbours, "_see", lambda *_: None)


def _fields_may_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cloudfront, "_refuse_other_comments", lambda *_: None)


def _removed(place: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Takes a rule out that is a function, a pattern or a number of a module."""

    def remove(patch: pytest.MonkeyPatch) -> None:
        assert hasattr(place, name)
        patch.setattr(place, name, value)

    return remove


def _passes(*_: object, **__: object) -> None:
    """Refuses nothing."""


def _first_records_are_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv_evidence.CsvDialect, "row_fault", lambda *_: "")
    patch.setattr(csv_evidence, "_stands_out", lambda *_: "")


def _line_ends_are_one(patch: pytest.MonkeyPatch) -> None:
    usual = first_record._with_ends

    def as_lf(begin: Begin, head: bytes, *, complete: bool) -> Begin:
        return usual(begin, head, complete=complete)._replace(header_end=b"\n", mixed=False)

    patch.setattr(first_record, "_with_ends", as_lf)


_NOTHING = re.compile(b"(?!)")
# What a name says, and the setting, is then all that is known.
_ROWS = {"csv_header": "absent"}
_NAMES = {"csv_header": "present"}
_TAR = (b"name.txt".ljust(257, b"0") + b"ustar").ljust(512, b"0") + b"content\n"

GUARDS = (
    Guard(
        "a source that ends within quotes is not joined",
        _no_quote_is_open,
        {"a.csv": b'10.0.0.1,5" disk\n10.0.0.2,"cut off', "b.csv": b"10.0.0.3,ok\n"},
        rows,
        _ROWS,
    ),
    Guard(
        "text that looks like a document is not joined",
        _removed(plain_text, "document_in", lambda *_, **__: ""),
        {"a.log": b"<a>\n <b/>\n</a>\n", "b.log": b"<a n='2'>\n</a>\n"},
        whole,
    ),
    Guard(
        "text whose name says something else is not joined",
        _removed(plain_text, "_extension", lambda _: ""),
        {"a.plt": b"plot sin(x) with 3\n", "b.plt": b"plot cos(x) with 4\n"},
        whole,
    ),
    Guard(
        "text with control characters is not joined",
        _removed(plain_text, "_controls", lambda _: ""),
        {"a.log": b"job 1 done\n" * 9 + b"end\x1a\n", "b.log": b"job 2 done\n" * 9 + b"end\x1a\n"},
        before_the_mark,
    ),
    Guard(
        "sources of text that begin with the same line are not joined",
        _no_line_is_shared,
        {"a.log": b"host load\nweb-1 5\nweb-2 7\n", "b.log": b"host load\nweb-1 6\nweb-2 8\n"},
        named_by_blanks,
    ),
    Guard(
        "every line of JSON lines is an object",
        _any_json_is_lines,
        {"a.json": b'{\n "a": 1\n}\n', "b.json": b'{\n "a": 2\n}\n'},
        document,
    ),
    Guard(
        "a document on one line is no line",
        _no_json_is_a_document,
        {
            "a.json": b'{"type":"FeatureCollection","features":[]}',
            "b.json": b'{"type":"FeatureCollection","features":[1]}',
        },
        document,
    ),
    Guard(
        "lines of a Delta commit belong together",
        _no_action_is_deltas,
        {
            "0.json": b'{"commitInfo":{"operation":"WRITE"}}\n{"x":1}\n',
            "1.json": b'{"commitInfo":{"operation":"DELETE"}}\n{"x":2}\n',
        },
        whole,
    ),
    Guard(
        "an object that shares no member with its neighbours is no line",
        _no_neighbour_is_looked_at,
        {"a.json": b'{"colour":"red"}', "b.json": b'{"limits":{"cpu":1}}'},
        document,
    ),
    Guard(
        "a comment line below #Fields: says the same",
        _fields_may_change,
        {
            "a": b"#Version: 1.0\n#Fields: date a\n2026-01-01 1\n#Fields: date b\n2026-01-01 2\n",
            "b": b"#Version: 1.0\n#Fields: date a\n2026-01-02 3\n",
        },
        w3c,
    ),
    Guard(
        "what a magic number names is no text",
        _removed(characters, "_ANY_MAGIC", _NOTHING),
        {"a.csv": b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n", "b.csv": b"%PDF-1.7\n2 0 obj\n"},
        whole,
        _ROWS,
    ),
    Guard(
        "a tar archive is no text",
        _removed(characters, "_TAR", slice(0, 0)),
        {"a.csv": _TAR, "b.csv": _TAR.replace(b"name", b"more")},
        whole,
        _ROWS,
    ),
    Guard(
        "what has NUL bytes is no text",
        _removed(characters, "_refuse_nuls", _passes),
        {"a.csv": b"\0d" + b"a" * 100 + b"\0c" + b"b" * 99, "b.csv": b"\0d" + b"c" * 100},
        with_lengths,
        _ROWS,
    ),
    Guard(
        "what has many control characters is no text",
        _removed(characters, "_refuse_controls", _passes),
        {"a.csv": b"\x08\x01\x12\x03abc" * 9, "b.csv": b"\x08\x02\x12\x03def" * 9},
        whole,
        _ROWS,
    ),
    Guard(
        "UTF-16 is joined by no setting",
        _removed(characters, "refuse_wide", _passes),
        {"a.log": "one\ntwo\n".encode("utf-16"), "b.log": "three\n".encode("utf-16")},
        wide,
        {"format": "text"},
    ),
    Guard(
        "text in two encodings is not joined",
        _removed(characters, "refuse_encoding", _passes),
        {
            "a.log": "2026-01-31 12:00:00 caf\u00e9\n".encode(),
            "b.log": "2026-01-31 12:00:01 caf\u00e9\n2026-01-31 12:00:02 a\n".encode("latin-1"),
        },
        text,
    ),
    Guard(
        "a source that ends within a character is not joined",
        _removed(ends, "ends_within_character", lambda _: False),
        {"a.log": "one\ncaf\u00e9".encode()[:-1], "b.log": b"two\n"},
        text,
        {"format": "text"},
    ),
    Guard(
        "a source that ends within a JSON string is not joined",
        _removed(ends, "spec_of", lambda one: replace(spec_of(one), refuse_open=None)),
        {"a.json": b'{"a":1}\n{"a":"cut off', "b.json": b'{"a":2}\n'},
        json_values,
        {"format": "json_lines"},
    ),
    Guard(
        "a log that ends within quotes is not joined",
        _removed(log_lines, "refuse_open_quote", _passes),
        {
            "a.log": b'2026-01-31 12:00:00 web-1,a\n2026-01-31 12:00:01 web-1,a,"cut off',
            "b.log": b"2026-01-31 12:00:02 web-1,b\n2026-01-31 12:00:03 web-1,c\n",
        },
        rows,
    ),
    Guard(
        "only the names of flow logs are a flow log's header",
        _removed(vpc_flow, "_is_flow_header", lambda *_: True),
        {
            "1_vpcflowlogs_a.log": b"2026-01-31 12:00:00 ok\n2026-01-31 12:00:01 a\n",
            "1_vpcflowlogs_b.log": b"2026-01-31 12:00:00 ok\n2026-01-31 12:00:02 b\n",
        },
        text,
    ),
    Guard(
        "a sep= line is no header",
        _removed(first_record, "_SEPARATOR", _NOTHING),
        {"a.csv": b"sep=;\na;b\n1;2\n", "b.csv": b"sep=;\na;b\n3;4\n"},
        named,
        _NAMES,
    ),
    Guard(
        "carriage returns alone end no line",
        _removed(first_record, "_refuse_lone_returns", _passes),
        {"a.csv": b"a,b\r1,2\n", "b.csv": b"a,b\r1,2\n"},
        named,
        _NAMES,
    ),
    Guard(
        "two sources that begin alike decide nothing",
        _removed(csv_evidence, "FEWEST_SOURCES", 2),
        {"a.csv": b"offline,x\n1,a\n2,b\n", "b.csv": b"offline,x\n3,c\n4,d\n"},
        rows,
    ),
    Guard(
        "text over text is no header",
        _removed(csv_evidence, "_header_fault", lambda *_: ""),
        {
            "a.csv": b"alice,red\nbob,blue\n",
            "b.csv": b"alice,red\ncarl,green\n",
            "c.csv": b"alice,red\ndora,pink\n",
        },
        rows,
    ),
    Guard(
        "what does not look like a name is no header",
        _removed(csv_evidence, "_is_name", lambda _: True),
        {
            "a.csv": b"web-1,up\n1,a\n2,b\n",
            "b.csv": b"web-1,up\n3,c\n4,d\n",
            "c.csv": b"web-1,up\n5,e\n6,f\n",
        },
        rows,
    ),
    Guard(
        "first records that differ and may be names are no rows",
        _first_records_are_rows,
        {
            "a.csv": b"units,total\n1,2\n3,4\n",
            "b.csv": b"count,price\n5,6\n7,8\n",
            "c.csv": b"pieces,weight\n9,1\n2,3\n",
        },
        named,
    ),
    Guard(
        "a blank field above blank values is a value of its column",
        _removed(csv_evidence, "_value_fault", lambda *_: ""),
        {
            f"{n}.csv": b"login,upload,\n10:0%d,10.0.0.1,\n11:0%d,10.0.0.2,\n" % (n, n)
            for n in range(3)
        },
        rows,
    ),
    Guard(
        "a record that begins a transmission is no header",
        _removed(csv_evidence, "_TAGS", frozenset()),
        {f"{n}.csv": b"HDR,ACME,EUR\nTRX,1001,10.%d\n" % n for n in range(3)},
        rows,
    ),
    Guard(
        "a header stands over values of a type",
        _removed(csv_evidence, "_type", lambda _: "number"),
        {f"{n}.csv": b"alice,red\nbob,blue %d\n" % n for n in range(3)},
        rows,
    ),
    Guard(
        "what several sources begin with, and no other record has, may be a name",
        _removed(csv_evidence, "_shared", lambda *_: ""),
        {f"{n}.csv": b"country,202%d\nrome,%d\noslo,2\n" % (n, n) for n in range(3)},
        named,
    ),
    Guard(
        "first records that all are written as no row below may be names",
        _removed(csv_evidence, "_stands_out", lambda *_: ""),
        {f"{n}.csv": b"201%d,202%d\n" % (n, n) + b"1.5,2.5\n" * 9 for n in range(3)},
        named,
    ),
    Guard(
        "a source is held against the rows of its data set",
        _removed(first_record, "_contradiction", lambda *_, **__: ""),
        {
            **{f"{n:02}.csv": b"%d,web\n7,web\n%d,db\n" % (n, n) for n in range(40)},
            "20.csv": b"id,host\n20,web\n",
        },
        below_names,
    ),
    Guard(
        "a source is held against the header of its data set",
        _removed(first_record, "_contradiction", lambda *_, **__: ""),
        {
            **{f"{n:02}.csv": b"id,host\n%d,web\n" % n for n in range(40)},
            "20.csv": b"7,db\n20,web\n",
            "22.csv": b"7,db\n22,web\n",
        },
        below_names,
    ),
    Guard(
        "sources with other line ends share no output",
        _line_ends_are_one,
        {
            f"{n}.csv": (b"id,host\n%d,web\n%d,db\n" % (n, n)).replace(b"\n", end)
            for n, end in enumerate([b"\n", b"\r\n"] * 3)
        },
        by_first_line_end,
    ),
)


def seen(world: World, guard: Guard) -> Counter[Any]:
    """What the reader finds in the outputs, and in the sources that are in none of them."""
    outputs = world.store.contents("lake", "compacted/").values()
    found = Counter(record for body in outputs for record in guard.reader(body))
    for body in guard.sources.values():
        # The bytes of what was joined stand in an output, but for a line that was taken out.
        pieces = [line for line in body.split(b"\n") if line.strip()][1:]
        if not any(all(one in output for one in pieces) for output in outputs):
            found.update(guard.reader(body))
    return found


def compacted(guard: Guard) -> World:
    world = World(**guard.given)
    for name, body in guard.sources.items():
        world.put(name, body)
    world.run()
    return world


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.rule)
def test_a_reader_sees_what_the_sources_hold_and_would_not_without_the_rule(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Counter(record for body in guard.sources.values() for record in guard.reader(body))
    assert seen(compacted(guard), guard) == held
    with monkeypatch.context() as patch:
        guard.without(patch)
        assert seen(compacted(guard), guard) != held
