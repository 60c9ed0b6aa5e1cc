"""Commits of the version before: told apart, held by clean-up, let go once they were examined."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from compactor.log.columnar import Columnar
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import RULES
from compactor.log.old_rules import dropped_headers, is_doubtful
from compactor.log.passed import PassedRecord, write_passed
from compactor.model import Format
from compactor.outputs.first_lines import FirstLine, judge
from tests.support.cleaning import DAY, left, records
from tests.support.examples import PARTITION
from tests.support.old_commits import headed_commit
from tests.support.world import World

HEALTH = {
    "a.csv": b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n",
    "b.csv": b"10.0.0.1,GET,/health\n10.0.0.2,GET,/b\n",
}


def cleaning_world() -> World:
    world = World(clean_up="delete", retention_days=7)
    world.store.add_bucket("source")
    return world


def test_an_entry_without_rules_is_of_the_version_before():
    world = cleaning_world()
    commit = headed_commit(world, HEALTH, rules=RULES)
    entry = json.loads(gzip.decompress(encode_commit(commit)))
    assert entry.pop("rules") == RULES
    before = decode_commit(gzip.compress(json.dumps(entry).encode()))
    assert before.rules == 1
    assert decode_commit(encode_commit(commit)).rules == RULES
    assert is_doubtful(before)
    assert not is_doubtful(commit)
    assert dropped_headers(before) == {b"10.0.0.1,GET,/health"}


def test_what_is_committed_today_names_the_rules_of_today():
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.run()
    entries = f"_compactor/compacted/partitions/{PARTITION.path}commits/{1:020d}.json.gz"
    (key,) = world.store.contents("lake", entries)
    assert decode_commit(world.store.get("lake", key)).rules == RULES


@pytest.mark.parametrize("format", [Format.CSV, Format.TSV])
def test_clean_up_keeps_the_sources_of_dropped_first_lines_until_they_were_examined(format):
    world = cleaning_world()
    commit = headed_commit(world, HEALTH, format=format)
    headed_commit(world, {"c.csv": b"10.0.0.3,GET,/c\n1,2,3\n"}, format=format)
    world.clock.advance(8 * DAY)
    receipt = world.clean_up()
    assert (receipt.status, receipt.counts.deleted) == ("done", 0)
    (line,) = receipt.unsafe
    assert line.startswith(f"{PARTITION.path}: 2 commits of the version before dropped first lines")
    assert "compactor repair; their sources stay" in line
    assert left(world) == ["a.csv", "b.csv", "c.csv"]
    assert not records(world)
    passed = PassedRecord(commit_id=commit.commit_id, at=0.0, by="test")
    write_passed(world.settings.state, PARTITION.path, commit.sequence, passed, world.store)
    receipt = world.clean_up()
    assert left(world) == ["c.csv"]
    assert receipt.unsafe[0].startswith(f"{PARTITION.path}: a commit of the version before")


def test_a_record_about_another_commit_lets_nothing_go():
    world = cleaning_world()
    commit = headed_commit(world, HEALTH)
    passed = PassedRecord(commit_id="another", at=0.0, by="test")
    write_passed(world.settings.state, PARTITION.path, commit.sequence, passed, world.store)
    world.clock.advance(8 * DAY)
    assert world.clean_up().counts.deleted == 0


def test_commits_of_the_rules_of_today_are_cleaned_up_as_ever():
    world = cleaning_world()
    headed_commit(world, HEALTH, rules=RULES)
    world.clock.advance(8 * DAY)
    assert world.clean_up().counts.deleted == 2


@pytest.mark.parametrize(
    ("key", "rules", "doubtful"),
    [
        ("a.csv.gz", 1, True),
        ("a.TSV", 1, True),
        ("a.json", 1, False),
        ("a.csv", RULES, False),
    ],
)
def test_rows_that_were_named_after_first_lines_are_doubtful_by_the_keys_of_their_sources(
    key, rules, doubtful
):
    commit = headed_commit(cleaning_world(), HEALTH, rules=rules)
    assert commit.output is not None
    output = replace(commit.output, columnar=Columnar(2, 2, "0", "0", "snappy", "{}"))
    row = commit.rows[0]._replace(source=replace(commit.rows[0].source, key=key))
    assert is_doubtful(replace(commit, output=output, rows=(row,))) is doubtful


@pytest.mark.parametrize(
    ("line", "rows", "verdict"),
    [
        (b"10.0.0.1,GET,/health", [b"10.0.0.1,GET,/a"], FirstLine.ROW),
        (b"01/01/2026,login,alice", [b"02/01/2026,login,bob"], FirstLine.ROW),
        (b"00:00:00,start", [b"00:00:01,stop"], FirstLine.ROW),
        (b"20260101T000000Z,start", [b"20260101T000001Z,stop"], FirstLine.ROW),
        (b"fe80::1,GET", [b"fe80::2,GET"], FirstLine.ROW),
        (b"6f9619ff-8b86-d011-b42d-00cf4fc964ff,x", [b"y,z"], FirstLine.ROW),
        (b"true,x", [b"false,y"], FirstLine.ROW),
        (b"$12.50,x", [b"$1.00,y"], FirstLine.ROW),
        (b"I,alice,paris", [b"U,bob,rome"], FirstLine.UNDECIDED),
        (b"my-bucket,logs/a.json", [b"my-bucket,logs/b.json"], FirstLine.UNDECIDED),
        (b"web-1,OK,healthy", [], FirstLine.UNDECIDED),
        (b"name,name", [b"1,2"], FirstLine.UNDECIDED),
        (b"id", [b"1"], FirstLine.UNDECIDED),
        (b"id,name", [b"1,a", b"2,b"], FirstLine.HEADER),
        (b'"host name","bytes"', [b'"a","1,200"'], FirstLine.HEADER),
        (b"time,message", [b'2026-01-01T00:00:00Z,"a, b"'], FirstLine.HEADER),
    ],
)
def test_a_first_line_is_a_header_only_where_nothing_else_is_possible(line, rows, verdict):
    assert judge(line, b",", rows, elsewhere=False) is verdict


def test_a_first_line_that_stands_among_the_rows_is_a_row():
    assert judge(b"id,name", b",", [b"1,a"], elsewhere=True) is FirstLine.ROW
