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

from compactor.limits import WorkerLimits
from compactor.log.log import CommitLog
from tests.support.examples import PARTITION, columns
from tests.support.world import World

MALFORMED, OPEN_QUOTE, UNKNOWN = "malformed_document", "open_quote", "unknown_format"

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


def test_tables_that_nobody_declared_are_left_alone_with_the_setting() -> None:
    sources = numbered(b"id,name\n1,a\n", b"id,name\n2,b\n")
    outputs, left = outcome(sources, formats=[])
    assert (outputs, left) == ([], dict.fromkeys(sources, UNKNOWN))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_a_declared_header_is_kept_once(delimiter: str, end: bytes) -> None:
    d = delimiter.encode()
    header = d.join((b"id", b'"full name"', b"amount"))
    one = end.join((header, d.join((b"1", b"alice", b"1.5")), d.join((b"2", b"bob", b"2.5"))))
    two = end.join((header, d.join((b"3", b'"x""y"', b"3.5")), b""))
    declared = columns(delimiter=delimiter)
    sources = numbered(one, two, b"\xef\xbb\xbf" + two, header + end)
    outputs, left = outcome(sources, delimiter, formats=declared)
    assert not left
    row = ("3", 'x"y', "3.5")
    assert outputs == [
        [("id", "full name", "amount"), ("1", "alice", "1.5"), ("2", "bob", "2.5"), row, row]
    ]


def test_the_blank_name_of_an_index_of_pandas_is_part_of_a_header() -> None:
    frame = pandas.DataFrame({"city": ["rome", "oslo"], "size": [3.5, 4.5]}, index=["a", "b"])
    outputs, left = outcome(numbered(*[frame.to_csv().encode()] * 3))
    assert not left
    assert outputs == [[("", "city", "size"), *[("a", "rome", "3.5"), ("b", "oslo", "4.5")] * 3]]


def test_rows_without_a_header_are_joined_whole_even_if_all_begin_alike() -> None:
    sources = numbered(*[b"web-1,OK\nweb-2,OK\n"] * 3)
    outputs, left = outcome(sources, formats=columns(header=False))
    assert not left
    assert outputs == [rows("web-1,OK", "web-2,OK") * 3]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"id,name\n1,a,b\n", MALFORMED),
        (b"id,name\n1\n", MALFORMED),
        (b"id,name\n1,a\nid,name\n2,b\n", MALFORMED),
        (b"id,name\n1,a\r\n", MALFORMED),
        (b'id,name\n1,"a\n', OPEN_QUOTE),
        (b"id,name\r1,a\r", MALFORMED),
        (b"id,name\n1,a\xff\n", "unknown_encoding"),
        (b"id,name\n1,a\0\n", "binary"),
    ],
)
def test_a_source_that_contradicts_is_left_alone_and_its_neighbours_are_compacted(
    bad: bytes, reason: str
) -> None:
    good = [b"id,name\n%d,a\n" % number for number in range(7)]
    outputs, left = outcome(numbered(*good[:3], bad, *good[3:]))
    assert left == {"003.csv": reason}
    assert outputs == [rows("id,name", *(f"{number},a" for number in range(7)))]


def test_another_header_makes_another_output() -> None:
    sources = numbered(
        *[b"id,name\n1,a\n"] * 3, b"id,Name\n2,b\n", b"name,id\nc,3\n", b"id,name,x\n4,d,e\n"
    )
    outputs, left = outcome(sources)
    assert not left
    assert outputs == sorted(
        [
            rows("id,name", "1,a", "1,a", "1,a"),
            rows("id,Name", "2,b"),
            rows("name,id", "c,3"),
            rows("id,name,x", "4,d,e"),
        ]
    )


def test_line_ends_stay_and_sources_with_other_ones_form_another_output() -> None:
    world = World()
    for number, end in enumerate((b"\n", b"\r\n", b"\n", b"\r\n")):
        world.put(f"{number}.csv", end.join((b"id,name", b"%d,a" % number, b"")))
    world.run()
    assert sorted(world.store.contents("lake", "compacted/").values()) == [
        b"id,name\n0,a\n2,a\n",
        b"id,name\r\n1,a\r\n3,a\r\n",
    ]


def test_the_first_matching_declaration_counts_and_keeps_sources_apart() -> None:
    declared = [
        {"match": "*raw*", "format": "csv", "header": False},
        {"match": "*.csv", "format": "csv", "header": True},
    ]
    sources = {
        "1-raw.csv": b"id,name\n1,a\n",
        "2-raw.csv": b"id,name\n",
        "3.csv": b"id,name\n2,b\n",
    }
    outputs, left = outcome(sources, formats=declared)
    assert not left
    assert outputs == sorted([rows("id,name", "1,a", "id,name"), rows("id,name", "2,b")])


def test_a_large_source_is_checked_to_its_end() -> None:
    body = b"id,name\n" + b"".join(b"%d,a\n" % number for number in range(20_000))
    sources = numbered(body, body + b'7,"open\n', body + b"7\n", body + b"id,name\n")
    limits = WorkerLimits(whole_bytes=64 * 1024, block_bytes=10_000)
    outputs, left = outcome(sources, limits=limits)
    assert left == {"001.csv": OPEN_QUOTE, "002.csv": MALFORMED, "003.csv": MALFORMED}
    assert [len(output) for output in outputs] == [20_001]
