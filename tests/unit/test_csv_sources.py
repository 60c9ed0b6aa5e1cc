"""CSV and TSV, from sources to what a reader of the destination sees, by Python's csv module.

Each row of a source is a row of an output, or its source was left alone with a reason.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping

import pytest

from compactor.log.log import CommitLog
from tests.support.examples import PARTITION
from tests.support.world import World

AMBIGUOUS, OPEN_QUOTE = "ambiguous_header", "open_quote"

Rows = list[tuple[str, ...]]


def outcome(
    sources: Mapping[str, bytes], delimiter: str = ",", **given: object
) -> tuple[list[Rows], dict[str, str]]:
    """The rows of each output, and why sources were left alone, by name."""
    world = World(**given)
    for name, content in sources.items():
        world.put(name, content)
    receipt = world.run()
    assert receipt.status == "done"
    outputs = [
        _rows(body, delimiter) for body in world.store.contents("lake", "compacted/").values()
    ]
    commits = list(CommitLog(world.store, world.settings, PARTITION).every_commit())
    left = {
        one.source.key.removeprefix(PARTITION.prefix): str(one.reason)
        for commit in commits
        for one in commit.quarantined
    }
    named = {row.source.key.removeprefix(PARTITION.prefix) for c in commits for row in c.rows}
    assert named | set(left) == set(sources)
    assert not named & set(left)
    assert len(outputs) == sum(commit.output is not None for commit in commits)
    return sorted(outputs), left


def _rows(body: bytes, delimiter: str) -> Rows:
    text = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
    lines = io.StringIO(text.decode(), newline="")
    return [tuple(row) for row in csv.reader(lines, delimiter=delimiter)]


def numbered(*contents: bytes, end: str = ".csv") -> dict[str, bytes]:
    return {f"{number:03}{end}": content for number, content in enumerate(contents)}


def rows(*lines: str) -> Rows:
    return [tuple(line.split(",")) for line in lines]


def test_equal_first_rows_with_addresses_are_rows() -> None:
    first = b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n"
    second = b"10.0.0.1,GET,/health\n10.0.0.2,GET,/b\n"
    outputs, left = outcome(numbered(first, second))
    assert not left
    assert outputs == [
        rows("10.0.0.1,GET,/health", "10.0.0.1,GET,/a")
        + rows("10.0.0.1,GET,/health", "10.0.0.2,GET,/b")
    ]


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T00:00:00Z",
        "20260101T000000Z",
        "00:00:00",
        "01/Jan/2026:00:00:00 +0000",
        "01/01/2026 10:00",
        "Thu Jan  1 00:00:00 2026",
        "10.0.0.1",
        "::1",
        "00:1a:2b:3c:4d:5e",
        "3b1f8b1e-8d4e-4b7a-9d57-0a1f5f3c2b11",
        "1.5",
        "-3",
        "/health",
        "https://x/y",
        "a@b.co",
        "d41d8cd98f00b204e9800998ecf8427e",
        "arn:aws:s3:::bucket",
        "s3://bucket/key",
    ],
)
@pytest.mark.parametrize("below", [b"", b"web,%b,ok\n"])
def test_equal_first_rows_with_a_value_that_names_no_column_are_rows(
    value: str, below: bytes
) -> None:
    row = b"agent,%b,ok\n" % value.encode()
    source = row + (below % value.encode() if below else b"")
    outputs, left = outcome(numbered(source, source, source))
    assert not left
    (found,) = outputs
    assert found == _rows(source * 3, ",")


@pytest.mark.parametrize(
    "source",
    [
        b"web-1,OK,healthy\n",
        b"web,up,healthy\n",
        b"I,alice,paris\nU,bob,rome\n",
        b'"bucket","key one"\n"bucket","key two"\n',
        b"name,city\nalice,paris\nbob,rome\n",
        b"host,2024,2025\nweb,1,2\n",
        b",0,1\n0,5,6\n",
        b"\nid,name\n1,alice\n",
        b",,\nid,name,city\n1,alice,rome\n",
        b"sep=;\nid;name\n1;alice\n",
        b'"sep=,"\nid,name\n1,alice\n',
        b"# made by hand\nid,name\n1,alice\n",
        b"Report,Q1\nid,name,city\n1,alice,rome\n",
        b"1,2,3\n4,5,6\n",
        b"01/01/2026,alice\n02/01/2026,bob\n",
        b"2026-01-01,alice\n2026-01-02,bob\n",
        b"true,false\nfalse,true\n",
        b"id,name,ID\n1,alice,2\n",
        b"id,,name\n1,2,alice\n",
        b"host,2026-01-01T00:00Z,2026-01-01T01:00Z\nweb,1,2\n",
        b"host,00:00,01:00,02:00\nweb,1,2,3\n",
        b"service,0.5,0.9,0.99\nweb,0.1,0.2,0.3\n",
        b"HDR,ACME,EUR\nTRX,1001,10.5\nTRX,1002,20.5\n",
        b"Generated,2026-01-01 00:00:00\nid,value\n1,2\n",
        b"id,name\n1\n2,bob\n",
        b"id,name\n",
        b"agent-7,connected\ncpu,0.5\n",
        b"alice,unknown\nbob,12\n",
    ],
)
def test_what_may_be_a_header_or_a_row_is_left_alone(source: bytes) -> None:
    sources = numbered(source, source, source)
    outputs, left = outcome(sources)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


def test_what_is_left_alone_is_told_with_its_first_bytes_and_the_setting_that_decides() -> None:
    world = World()
    world.put("a.csv", b"name,city\nalice,paris\n")
    receipt = world.run()
    (line,) = receipt.counts.lines if hasattr(receipt.counts, "lines") else receipt.quarantined
    assert "'name,city\\nalice,paris\\n'" in line.detail
    assert 'set csv_header to "present" or "absent"' in line.detail


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("delimiter", "name"),
    [(",", ".csv"), (";", ".csv"), ("\t", ".csv"), ("|", ".csv"), ("\t", ".tsv")],
)
def test_a_certain_header_is_kept_once(delimiter: str, name: str, end: bytes) -> None:
    d = delimiter.encode()
    header = d.join((b"id", b'"full name"', b"amount"))
    one = end.join((header, d.join((b"1", b"alice", b"1.5")), d.join((b"2", b"bob", b"2.5"))))
    two = end.join((header, d.join((b"3", b'"x""y"', b"3.5")), b""))
    outputs, left = outcome(numbered(one, two, b"\xef\xbb\xbf" + two, end=name), delimiter)
    assert not left
    row = ("3", 'x"y', "3.5")
    assert outputs == [
        [("id", "full name", "amount"), ("1", "alice", "1.5"), ("2", "bob", "2.5"), row, row]
    ]


def test_a_header_alone_has_no_rows_beside_sources_that_confirm_it() -> None:
    outputs, left = outcome(
        numbered(b"id,name\n", b"id,name\n1,a\n", b"id,name", b"id,name\n2,b\n")
    )
    assert not left
    assert outputs == [rows("id,name", "1,a", "2,b")]


def test_one_source_with_rows_confirms_no_header_of_others_and_stands_alone() -> None:
    sources = numbered(b"id,name\n", b"id,name\n1,a\n", b"id,name")
    outputs, left = outcome(sources)
    assert outputs == [rows("id,name", "1,a")]
    assert left == {"000.csv": AMBIGUOUS, "002.csv": AMBIGUOUS}


def test_a_single_source_stands_alone() -> None:
    outputs, left = outcome({"a.csv": b"id,name\n1,alice\nid,name\n"})
    assert not left
    assert outputs == [rows("id,name", "1,alice", "id,name")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_first_record_that_stands_among_the_rows_again_is_no_certain_header(end: bytes) -> None:
    again = b"id,name\n1,alice\n2,bob\nid,name" + end
    sources = numbered(b"id,name\n3,carol\n", again, b"id,name\n4,dan\n")
    outputs, left = outcome(sources)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


def test_a_row_that_only_begins_as_the_header_is_a_row() -> None:
    body = b"".join(b"%d,a\n" % n for n in range(30))
    outputs, left = outcome(numbered(b"id,name\n" + body + b"id,names\n" + body, b"id,name\n2,b\n"))
    assert not left
    assert [len(found) for found in outputs] == [63]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("above", [0, 40])
def test_a_header_that_stands_among_the_rows_of_other_sources_is_not_certain(
    order: int, above: int
) -> None:
    body = b"10.0.0.2,up\n" * above
    other = b"ip,state\n" + body + b"id,name\n" + body + b"10.0.0.3,up\n"
    sources = numbered(*[b"id,name\n1,a\n", b"id,name\n2,b\n", other][::order])
    outputs, left = outcome(sources)
    if above and order < 0:
        # Another group, which has nothing of the first: each is certain by itself.
        assert not left
        assert sum(map(len, outputs)) == 86
        return
    assert {sources[name][:2] for name in left} >= {b"id"}
    assert all(found[0] == ("ip", "state") for found in outputs)


def test_different_headers_never_mix() -> None:
    sources = numbered(
        b"id,name\n1,a\n", b"id,city\n1,rome\n", b"id,name\n2,b\n", b"id,city\n2,paris\n"
    )
    outputs, left = outcome(sources)
    assert not left
    assert outputs == [rows("id,city", "1,rome", "2,paris"), rows("id,name", "1,a", "2,b")]


def test_rows_of_different_width_or_delimiter_never_mix() -> None:
    sources = numbered(b"10.0.0.1,a\n", b"10.0.0.1;a\n", b"10.0.0.1,a,b\n", b"10.0.0.2,b\n")
    outputs, left = outcome(sources)
    assert not left
    assert len(outputs) == 3
    assert rows("10.0.0.1,a", "10.0.0.2,b") in outputs


def test_many_sources_with_different_first_records_are_left_alone_as_ambiguous() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]
    names = [f"{one} {two}" for one in words for two in words]
    sources = numbered(*(f"{name},active\nsomebody,{n}\n".encode() for n, name in enumerate(names)))
    outputs, left = outcome(sources)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


def test_masks_without_a_common_column_confirm_no_header() -> None:
    sources = numbered(b"one,two\n1,alice\n", b"one,two\nbob,2\n")
    outputs, left = outcome(sources)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


@pytest.mark.parametrize(
    ("name", "cut", "whole", "delimiter"),
    [
        (".csv", b'id,size\n1,5" disk\n2,"cut off here', b"id,size\n3,ok\n", ","),
        (".csv", b'id;size\n1;5" disk\n2;"cut off here', b"id;size\n3;ok\n", ";"),
        (".tsv", b'id\tsize\n1\t5" disk\n2\t"cut off here', b"id\tsize\n3\tok\n", "\t"),
        (".csv", b'id,size\n"1,6', b"id,size\n3,ok\n", ","),
        (".csv", b'id,size\n1,"a \\"\n', b"id,size\n3,ok\n", ","),
    ],
)
@pytest.mark.parametrize("csv_header", ["auto", "present", "absent"])
def test_a_source_that_ends_within_quotes_is_left_alone(
    name: str, cut: bytes, whole: bytes, delimiter: str, csv_header: str
) -> None:
    sources = numbered(cut, whole, whole.replace(b"3", b"4"), end=name)
    outputs, left = outcome(sources, delimiter, csv_header=csv_header)
    assert left == {f"000{name}": OPEN_QUOTE} or (csv_header, list(left.values())) == (
        "auto",
        [AMBIGUOUS],
    )
    header = ("id", "size")
    ends = [header] if csv_header == "absent" else []
    assert outputs == [[header, ("3", "ok"), *ends, ("4", "ok")]]


def test_rows_without_a_header_that_end_within_quotes_are_left_alone() -> None:
    sources = numbered(b'10.0.0.1,"cut off', b"10.0.0.2,ok\n", b"10.0.0.3,ok\n")
    outputs, left = outcome(sources)
    assert left == {"000.csv": OPEN_QUOTE}
    assert outputs == [rows("10.0.0.2,ok", "10.0.0.3,ok")]


@pytest.mark.parametrize("csv_header", ["auto", "present", "absent"])
def test_carriage_returns_alone_are_left_alone(csv_header: str) -> None:
    sources = numbered(b"id,name\r1,alice\r", b"id,name\r2,bob\r")
    outputs, left = outcome(sources, csv_header=csv_header)
    assert not outputs
    assert left == dict.fromkeys(sources, "unknown_format")


@pytest.mark.parametrize("csv_header", ["auto", "present", "absent"])
def test_a_source_that_ends_between_carriage_return_and_newline_is_left_alone(
    csv_header: str,
) -> None:
    sources = numbered(b"id,name\r\n1,alice\r", b"id,name\r\n2,bob\r\n", b"id,name\r\n3,dan\r\n")
    outputs, left = outcome(sources, csv_header=csv_header)
    assert left == {"000.csv": "open_end"}
    assert len(outputs) == 1


def test_present_takes_the_first_record_for_the_header_whatever_it_is() -> None:
    sources = numbered(b"name,city\na,b\n", b"name,city\n", b"name,city\nc,d")
    outputs, left = outcome(sources, csv_header="present")
    assert not left
    assert outputs == [rows("name,city", "a,b", "c,d")]
    years = numbered(b",2024,2025\nx,1,2\n", b",2024,2025\ny,3,4\n")
    outputs, left = outcome(years, csv_header="present")
    assert outputs == [rows(",2024,2025", "x,1,2", "y,3,4")]
    assert not left


def test_absent_joins_everything_whole() -> None:
    sources = numbered(b"web-1,OK,healthy\n", b"web-1,OK,healthy\n", b"id,name,x\n1,a,2")
    outputs, left = outcome(sources, csv_header="absent")
    assert not left
    one = rows("web-1,OK,healthy")
    assert outputs == [one + one + rows("id,name,x", "1,a,2")]


@pytest.mark.parametrize("csv_header", ["present", "absent"])
def test_no_setting_makes_a_separator_line_a_record(csv_header: str) -> None:
    sources = numbered(b"sep=;\nid;name\n1;a\n", b"sep=;\nid;name\n2;b\n")
    outputs, left = outcome(sources, csv_header=csv_header)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


def test_an_explicit_format_still_asks_what_the_first_record_is() -> None:
    sources = {"a": b"web-1,OK,healthy\n", "b": b"web-1,OK,healthy\n"}
    outputs, left = outcome(sources, format="csv")
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)
    sources = {"a": b"id,name\n1,a\n", "b": b"id,name\n2,b\n"}
    assert outcome(sources, format="csv") == ([rows("id,name", "1,a", "2,b")], {})


def big(first: bytes, row: bytes, last: bytes = b"") -> bytes:
    return first + row * ((17 << 20) // len(row)) + last


def test_a_large_source_that_ends_within_quotes_is_left_alone() -> None:
    cut = big(b"id,text\n", b"1,some text that is not quoted\n", b'2,5" disk\n3,"cut off')
    sources = numbered(cut, b"id,text\n4,x\n", b"id,text\n5,y\n")
    outputs, left = outcome(sources, compression="gzip")
    assert left == {"000.csv": OPEN_QUOTE}
    assert outputs == [rows("id,text", "4,x", "5,y")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_first_record_that_stands_among_the_rows_of_a_large_source_is_found(end: bytes) -> None:
    row = b"1,some text that is not quoted\n"
    sources = numbered(big(b"id,text\n", row, b"id,text" + end), b"id,text\n4,x\n")
    outputs, left = outcome(sources, compression="gzip")
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)
