"""CSV and TSV, from sources to what a reader of the destination sees, by Python's csv module.

Each row of a source is a row of an output, or its source was left alone with a reason.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping

import pandas
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


def header_and(*bodies: bytes, header: bytes = b"id,name") -> dict[str, bytes]:
    return numbered(*(header + b"\n" + body for body in bodies))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("delimiter", "name"),
    [(",", ".csv"), (";", ".csv"), ("\t", ".csv"), ("|", ".csv"), ("\t", ".tsv")],
)
def test_a_header_that_every_source_has_is_kept_once(delimiter: str, name: str, end: bytes) -> None:
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


@pytest.mark.parametrize("index", [("a", "b"), (1, 2), ("2026-01-02", "2026-01-03")])
def test_the_blank_name_of_an_index_of_pandas_is_part_of_a_header(
    index: tuple[object, ...],
) -> None:
    frame = pandas.DataFrame({"city": ["rome", "oslo"], "size": [3.5, 4.5]}, index=index)
    outputs, left = outcome(numbered(*[frame.to_csv().encode()] * 3))
    assert not left
    found = [
        (str(one), *row) for one, row in zip(index, (("rome", "3.5"), ("oslo", "4.5")), strict=True)
    ]
    assert outputs == [[("", "city", "size"), *found * 3]]


def test_a_header_alone_has_no_rows() -> None:
    sources = numbered(b"id,name\n", b"id,name\n1,a\n", b"id,name", b"id,name\n2,b\n3,c\n")
    outputs, left = outcome(sources)
    assert not left
    assert outputs == [rows("id,name", "1,a", "2,b", "3,c")]


@pytest.mark.parametrize(
    "firsts",
    [
        (b"10.0.0.1,GET,/a", b"10.0.0.2,GET,/b", b"10.0.0.1,GET,/c"),
        (b"pump7,offline", b"pump8,3.5", b"pump9,offline"),
        (b"alice,login", b"bob,logout", b"carol,login"),
        (b"EURUSD,closed", b"USDJPY,open", b"GBPUSD,closed"),
        (b"2026-01-01,-,ok", b"2026-01-02,3,ok", b"2026-01-03,-,bad"),
        (b"1,2,3", b"4,5,6", b"7,8,9"),
    ],
)
def test_first_records_that_differ_and_read_as_rows_are_rows(firsts: tuple[bytes, ...]) -> None:
    whole = [first.split(b",") for first in firsts]
    below = b"".join(b",".join([*one[:-1], other[-1]]) + b"\n" for one in whole for other in whole)
    sources = numbered(*(first + b"\n" + below for first in firsts))
    outputs, left = outcome(sources)
    assert not left
    assert outputs == [[row for source in sources.values() for row in _rows(source, ",")]]


@pytest.mark.parametrize(
    "source",
    [
        b"31.5,63,125\n50.1,48.2,47.0\n",
        b"country,2024,2025\nrome,1,2\n",
        b"host,00:00,01:00\nweb,1,2\n",
        b"HDR,ACME,EUR\nTRX,1001,10.5\nTRX,1002,20.5\n",
        b"agent-7,connected\ncpu,0.5\n",
        b"name,city\nalice,paris\n",
        b"10.0.0.1,GET,/health\n10.0.0.2,GET,/a\n",
        b"alice,login\nbob,3\nalice,4\n",
        b"id,id\n1,2\n",
        b"# made by x,y\n1,2\n",
        b",offline\n7,1\n,2\n7,3\n",
        b"login,upload,\n09:30,10.0.0.1,\n09:31,10.0.0.2,\n",
        b"login,,upload\n1,2,10.0.0.1\n3,4,10.0.0.2\n",
        b",login\n,1\n,2\n",
        b"opened,offline\nx,1\ny,missing\nz,2\n",
        b"\n1,2\n",
        b"id\n1\n2\n",
    ],
)
def test_first_records_that_every_source_has_and_no_header_are_left_alone(source: bytes) -> None:
    sources = numbered(*(source + source.splitlines(keepends=True)[-1] * n for n in range(1, 5)))
    outputs, left = outcome(sources)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


@pytest.mark.parametrize(
    "firsts",
    [
        (b"name,age", b"bob,4", b"carol,5", b"dan,6"),
        (b"country,2024,2025", b"country,2026,2027", b"country,2028,2029"),
        (b"user,action", b"user,action", b"alice,login", b"bob,logout"),
        (b"alpha,one", b"beta,two", b"gamma,three"),
    ],
)
def test_first_records_that_differ_and_may_be_headers_are_left_alone(
    firsts: tuple[bytes, ...],
) -> None:
    width = firsts[0].count(b",")
    row = b"x" + b",7" * width + b"\n" if width > 1 or b"age" in firsts[0] else b"alice,login\n"
    sources = numbered(*(first + b"\n" + row * 3 for first in firsts))
    outputs, left = outcome(sources)
    assert not outputs
    assert left == dict.fromkeys(sources, AMBIGUOUS)


@pytest.mark.parametrize(
    ("firsts", "row"),
    [
        # Years above amounts, bins above counts, days above days: of the right types, each alone.
        ((b"2019,2020,2021", b"2020,2021,2022", b"2021,2022,2023"), b"17.5,3.25,%d.5"),
        ((b"north,2019", b"south,2020", b"west,2021"), b"north,%d.5"),
        ((b"10,20,30", b"5,10,15", b"1,2,3"), b"9,4,%d"),
        ((b"2026-01,a", b"2026-02,b", b"2026-03,c"), b"2026-01-0%d,x"),
    ],
)
def test_first_records_that_all_are_written_or_ordered_as_no_row_below_are_left_alone(
    firsts: tuple[bytes, ...], row: bytes
) -> None:
    below = b"".join(row % n + b"\n" for n in range(1, 10))
    outputs, left = outcome(numbered(*(first + b"\n" + below for first in firsts)))
    assert not outputs
    assert set(left.values()) == {AMBIGUOUS}
    # Where one of them is as the rows are, they are rows.
    alike = (firsts[0], below.splitlines()[0], below.splitlines()[1], below.splitlines()[2])
    outputs, left = outcome(numbered(*(first + b"\n" + below for first in alike)))
    assert not left


def test_what_most_sources_begin_with_and_one_repeats_is_left_alone() -> None:
    outputs, left = outcome(
        numbered(b",0,1\n0,0.2,5\n1,0.5,2\n,0,1\n", b",0,1\n0,0.7,3\n", b"0,0.6,5\n1,0.3,4\n")
    )
    assert not outputs
    assert set(left.values()) == {AMBIGUOUS}


def test_first_records_of_two_tables_are_left_alone() -> None:
    outputs, left = outcome(
        numbered(
            b"host,2024,2025\nweb,6,1\ndb,7,2\nmail,8,3\n",
            b"17,0.5,api\n18,0.4,index\n19,0.1,worker\n20,0.2,api\n",
            b"21,0.5,api\n22,0.4,index\n23,0.1,worker\n24,0.2,api\n",
        )
    )
    assert not outputs
    assert set(left.values()) == {AMBIGUOUS}


@pytest.mark.parametrize(
    "header", ["दिनांक,राशि", "วันที่,จำนวน", "дата,сумма", "日付,金額", "Größe [m²],año"]
)
def test_names_of_columns_are_known_in_any_language(header: str) -> None:
    outputs, left = outcome(header_and(b"1,2\n", b"3,4\n", b"5,6\n", header=header.encode()))
    assert not left
    assert outputs == [rows(header, "1,2", "3,4", "5,6")]


def test_what_is_left_alone_is_reported_with_its_first_bytes_and_the_setting_that_decides() -> None:
    world = World()
    world.put("a.csv", b"name,city\nalice,paris\n")
    receipt = world.run()
    (line,) = receipt.counts.lines if hasattr(receipt.counts, "lines") else receipt.quarantined
    assert "only 1 source of its data set have 2 columns, and 3 are needed" in line.detail
    assert "'name,city\\nalice,paris\\n'" in line.detail
    assert 'set csv_header to "present" or "absent"' in line.detail


def test_sources_that_wait_are_taken_once_there_are_enough() -> None:
    world = World()
    names = [f"{number}.csv" for number in range(4)]
    for number, name in enumerate(names[:2]):
        world.put(name, b"id,name\n%d,a\n" % number)
    world.run()
    assert not world.store.contents("lake", "compacted/")
    world.put(names[2], b"id,name\n2,b\n")
    world.run()
    world.put(names[3], b"id,name\n3,b\n")
    world.run()
    bodies = sorted(world.store.contents("lake", "compacted/").values())
    assert bodies == [b"id,name\n0,a\n1,a\n", b"id,name\n2,b\n", b"id,name\n3,b\n"]


def test_the_decision_is_pinned_and_no_later_source_changes_it() -> None:
    world = World()
    for number in range(3):
        world.put(f"{number}.csv", b"id,name\n%d,a\n" % number)
    world.run()
    for number in range(3, 40):
        world.put(f"{number}.csv", b"%d,a\n" % number)
    world.run()
    left = world.store.contents("lake", "compacted/")
    assert list(left.values()) == [b"id,name\n0,a\n1,a\n2,a\n"]
    commits = list(CommitLog(world.store, world.settings, PARTITION).every_commit())
    details = [one.detail for commit in commits for one in commit.quarantined]
    assert len(details) == 37
    assert all("does not begin with the header of its data set" in one for one in details)


def test_one_source_without_the_header_of_a_pinned_data_set_is_left_alone() -> None:
    # Only twelve sources of a prefix are sampled, evenly spread.
    contents = [b"id,name\n%d,a\n" % number for number in range(100)]
    contents[50] = b"7,x\n8,y\n"
    contents[51] = b"id,name\n7,x\nid,name\n8,y\n"
    outputs, left = outcome(numbered(*contents))
    assert left == {"050.csv": AMBIGUOUS, "051.csv": AMBIGUOUS}
    assert [len(found) for found in outputs] == [99]


def test_one_source_with_a_header_among_rows_is_left_alone() -> None:
    rows_of_words = (b"alice,login", b"bob,logout", b"bob,login")
    contents = [
        b"%d,%b\n%d,%b\n" % (n, rows_of_words[n % 3], n, rows_of_words[n % 2]) for n in range(100)
    ]
    contents[50] = b"id,user,action\n" + contents[50]
    outputs, left = outcome(numbered(*contents))
    assert left == {"050.csv": AMBIGUOUS}
    assert [len(found) for found in outputs] == [198]


def test_one_source_with_a_header_among_rows_of_words_is_left_alone() -> None:
    users = (b"alice", b"bob", b"carol", b"dan", b"eve")
    did = (b"login", b"logout")
    contents = [
        b"%b,%b\n%b,%b\n" % (users[n % 5], did[n % 2], users[n // 3 % 5], did[n // 2 % 2])
        for n in range(100)
    ]
    contents[50] = b"user,action\n" + contents[50]
    outputs, left = outcome(numbered(*contents))
    assert left == {"050.csv": AMBIGUOUS}
    assert [len(found) for found in outputs] == [198]


def test_line_ends_stay_and_sources_with_other_ones_form_another_output() -> None:
    world = World()
    for number in range(3):
        world.put(f"{number}.csv", b"id,name\n%d,a\n" % number)
        world.put(f"w{number}.csv", b"id,name\r\n%d,a\r\n%d,b" % (number, number))
        world.put(f"x{number}.csv", b"id,name\n%d,a\r\n" % number)
    world.run()
    assert sorted(world.store.contents("lake", "compacted/").values()) == sorted(
        [
            b"id,name\n0,a\n1,a\n2,a\n",
            b"id,name\r\n0,a\r\n0,b\r\n1,a\r\n1,b\r\n2,a\r\n2,b\r\n",
            b"id,name\n0,a\r\n1,a\r\n2,a\r\n",
        ]
    )


def test_line_breaks_in_quotes_and_blank_lines_are_no_records() -> None:
    world = World()
    for number in range(3):
        world.put(f"{number}.csv", b'id,note\n%d,"two\nlines"\n\n%d,x\n' % (number, number))
    world.run()
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    assert commit.output is not None
    assert commit.output.records == 6
    assert [row.facts.records for row in commit.rows if row.facts] == [2, 2, 2]


def test_the_header_may_be_declared_by_pattern() -> None:
    declared = ["*/x*=absent", "*=present"]
    sources = {f"{n}{m}.csv": b"name,city\na,b\n" for n in "xy" for m in range(3)}
    outputs, left = outcome(sources, csv_header=declared)
    assert not left
    one = rows("name,city", "a,b")
    assert outputs == [rows("name,city", "a,b", "a,b", "a,b"), one + one + one]


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
    more = (whole.replace(b"3", number) for number in (b"4", b"5"))
    sources = numbered(cut, whole, *more, end=name)
    outputs, left = outcome(sources, delimiter, csv_header=csv_header)
    assert left == {f"000{name}": OPEN_QUOTE}
    header = ("id", "size")
    ends = [header] if csv_header == "absent" else []
    assert outputs == [[header, ("3", "ok"), *ends, ("4", "ok"), *ends, ("5", "ok")]]


def test_rows_without_a_header_that_end_within_quotes_are_left_alone() -> None:
    whole = (b"10.0.0.%d,ok\n10.0.0.9,ok\n" % number for number in (2, 3, 4))
    outputs, left = outcome(numbered(b'10.0.0.1,"cut off', *whole))
    assert left == {"000.csv": OPEN_QUOTE}
    assert [len(found) for found in outputs] == [6]


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
    sources = dict.fromkeys("abc", b"id,name\n1,a\n")
    joined = rows("id,name", "1,a", "1,a", "1,a")
    assert outcome(sources, format="csv") == ([joined], {})


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
    again = big(b"id,text\n", row, b"id,text" + end)
    sources = numbered(again, b"id,text\n4,x\n", b"id,text\n5,y\n")
    outputs, left = outcome(sources, compression="gzip")
    assert outputs == [rows("id,text", "4,x", "5,y")]
    assert left == {"000.csv": AMBIGUOUS}


def test_a_column_added_after_the_first_thousand_sources_is_seen() -> None:
    before = [b"id,name\n%d,a\n" % number for number in range(1_100)]
    after = [b"id,name,size\n%d,a,2\n" % number for number in range(20)]
    outputs, left = outcome(
        {f"{number:04}.csv": content for number, content in enumerate([*before, *after])}
    )
    assert not left
    assert [len(found) for found in outputs] == [1_101, 21]


def test_the_same_source_is_no_evidence_twice() -> None:
    before = [b"id,name\n%d,a\n" % number for number in range(1_100)]
    contents = [b"id,name,size\n1,a,2\n", *before, b"id,name,size\n2,b,3\n"]
    sources = {f"{number:04}.csv": content for number, content in enumerate(contents)}
    _, left = outcome(sources)
    assert left == {"0000.csv": AMBIGUOUS, "1101.csv": AMBIGUOUS}
