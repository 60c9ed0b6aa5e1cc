"""``compactor verify --deep`` compares the records of outputs and sources, as DuckDB reads both."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.model import TableDialect
from compactor.outputs import open_output
from compactor_cli.commands import verify
from compactor_cli.plain_files import NotCompared
from compactor_cli.record_comparison import Finding, compare
from tests.support.examples import PARTITION
from tests.support.world import World

BOM = b"\xef\xbb\xbf"
STAMP = b"2026-01-02T03:04:05Z INFO "
LATIN = {"formats": [{"format": "text", "encoding": "single_byte"}]}
HEADED = {"formats": [{"format": "csv", "header": True}]}
ROWS = {"output_format": "parquet"}
LONG = b"x" * 100_000


def rows(*values: dict[str, object]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(values)), sink)
    return bytes(sink.getvalue())


# Settings, sources, and a piece of the output with what stands there after the damage.
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, bytes]], tuple[bytes, bytes]]] = {
    "text": (
        {},
        [
            ("a.log", STAMP + b"a\n" + STAMP + b'"b"'),
            ("b.log", BOM + STAMP + b"c\n\n\n" + STAMP + b"d\n"),
        ],
        (b'"b"', b'"B"'),
    ),
    "text in Latin-1": (LATIN, [("a.log", b"caf\xe9 \x80\n"), ("b.log", b"\xff")], (b"\xe9", b"e")),
    "CSV with a header": (
        HEADED,
        [
            ("a.csv", b"id,name\n1,x\n1,x\n"),
            ("b.csv", BOM + b'id,name\n2,"y\n\nz"\n3,x'),
            ("c.csv", b"id,name\n"),
        ],
        (b"1,x\n", b""),
    ),
    "another header": (
        HEADED,
        [("a.csv", b"id,name\n1,x\n"), ("b.csv", b"id,name\n2,y\n")],
        (b"id,name", b"id,title"),
    ),
    "CSV without a header": (
        {"formats": [{"format": "csv", "header": False}]},
        [(f"{n}.csv", b"%d,ok\r\n%d,-\r\n7,ok\r\n" % (n, n)) for n in range(3)],
        (b"0,ok\r\n", b""),
    ),
    "TSV": (
        {"formats": [{"format": "tsv", "header": True}]},
        [("a.tsv", b'id\tname\n1\t"a\tb"\n'), ("b.tsv", b"id\tname\n2\tc\n")],
        (b"2\tc", b"2\td"),
    ),
    "VPC flow logs": (
        {},
        [
            ("a.log", b"version account-id srcaddr\n2 1 10.0.0.1\n"),
            ("b.log", b"version account-id srcaddr\n2 1 10.0.0.2"),
        ],
        (b"10.0.0.2", b"10.0.0.1"),
    ),
    "CloudFront": (
        {},
        [
            ("a", b"#Version: 1.0\n#Fields: date x\n2026 1\n"),
            ("b", b"#Version: 1.0\n#Fields: date x\n2026 2"),
        ],
        (b"#Fields: date x", b"#Fields: date y"),
    ),
    "JSON lines": (
        {},
        [
            ("a.jsonl", b'{"a":1}\n\n{"a":2}'),
            ("b.jsonl", BOM + b'{"a":"\\ud800"}\n'),
            ("c.jsonl", b'{"a":1}\r\n{"b":[1,\t"}{"]}\n'),
        ],
        (b'{"a":2}\n', b'{"a":1}\n'),
    ),
    "JSON without newlines": (
        {},
        [("a", b'{"a":"}{"}{"a":2}'), ("b", b'{"a":3}{"a":4}\n{"a":5} ')],
        (b'}\n{"a":2}', b'}{"a":2}'),
    ),
    "arrays": (
        {},
        [
            ("a.json", b'[{"n":1},\n {"n":1.10}]\n'),
            ("b.json", b"[]"),
            ("c.json", b' [{"n":"[2]"}]'),
        ],
        (b"1.10", b"1.11"),
    ),
    "arrays as lines": (
        {"format": "json_array_lines"},
        [("a.json", b'[{"n":1},\n {"n": 2}]'), ("b.json", b'[{"n":\n3}]')],
        (b'"n":3', b'"n":2'),
    ),
    "CloudTrail": (
        {},
        [
            ("a_CloudTrail_x.json", b'{"Records":[{"a":[1]}, {"b": "]}%b"}]}' % LONG),
            ("b_CloudTrail_x.json", b' {"Records" : [{"a":\n"x  y"}] }\n'),
            ("c_CloudTrail_x.json", b'{"Records":[]}'),
        ],
        (b"x  y", b"x  z"),
    ),
    "CloudTrail as lines": (
        {"format": "cloudtrail_lines"},
        [
            ("a_CloudTrail_x.json", b'{"Records":[{"a":{"findings":[1]}}]}'),
            ("b_CloudTrail_x.json", b'{"Records":[{"a":2}]}'),
        ],
        (b"[1]", b"[2]"),
    ),
    "documents with a list": (
        {},
        [
            (f"{n}.json", b'{"Records":[{"n":%d,"x":"%b"}],"MillisBehindLatest" : 0}' % (n, LONG))
            for n in range(2)
        ],
        (b'"MillisBehindLatest":0', b'"MillisBehindLatest":1'),
    ),
    "JSON to rows": (
        ROWS,
        [("a.json", b'{"id":1}\n{"id":2}\n'), ("b.json", b'{"id":3}\n\n{"id":"x"}\n')],
        (b"", rows({"id": 1}, {"id": 2})),
    ),
    "arrays to rows": (
        ROWS,
        [("a.json", b'[{"id":1},{"id":2},\n{"id":3}]'), ("b.json", b'[{"id":4}]')],
        (b"", rows({"id": 1})),
    ),
    "Parquet": (
        {"format": "parquet"},
        [
            ("a.parquet", rows({"id": 1, "s": ["x"]}, {"id": None, "s": []})),
            ("b.parquet", rows({"id": 2, "s": None})),
        ],
        (b"", rows({"id": 1, "s": ["x"]}, {"id": None, "s": []}, {"id": 3, "s": None})),
    ),
}


def world_of(name: str, encode: Any = bytes) -> tuple[World, list[Commit]]:
    given, sources, _ = CASES[name]
    world = World(**given)
    for key, body in sources:
        world.put(key, encode(body))
    assert world.run().status == "done"
    commits = list(CommitLog(world.store, world.settings, PARTITION).every_commit())
    assert sum(len(one.rows) for one in commits) == len(sources)
    return world, commits


@pytest.mark.parametrize("encode", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("name", CASES)
def test_outputs_that_have_the_records_of_their_sources_give_no_finding(name, encode) -> None:
    world, commits = world_of(name, bytes if name == "Parquet" else encode)
    assert [compare(one, world.store) for one in commits] == [None] * len(commits)


@pytest.mark.parametrize("name", CASES)
def test_sources_that_are_gone_are_restored_unless_they_became_rows(name) -> None:
    world, commits = world_of(name)
    for key in list(world.store.contents("source", "")):
        world.store.seed("source", key, b"another\n")
    for one in commits:
        if one.output is not None and one.output.columnar is not None:
            with pytest.raises(NotCompared, match="sources are gone"):
                compare(one, world.store)
        else:
            assert compare(one, world.store) is None


@pytest.mark.parametrize("name", CASES)
def test_an_output_with_other_records_is_found(name) -> None:
    world, commits = world_of(name)
    before, after = CASES[name][2]
    findings: list[Finding | None] = []
    for one in commits:
        assert one.output is not None
        body = world.store.get("lake", one.output.key)
        changed = body.replace(before, after, 1) if before else after
        world.store.seed("lake", one.output.key, changed)
        findings.append(None if changed == body else compare(one, world.store))
    (finding,) = filter(None, findings)
    assert finding.kind == "records_differ"
    assert {*finding.sources} <= {row.source.key for one in commits for row in one.rows}


def test_a_finding_is_a_line_with_counts_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if first rows had been taken for headers.
    dialect = TableDialect(",", header=False)
    monkeypatch.setattr(open_output, "_dialect_of", lambda _: dialect)
    world = World(**HEADED)
    for name in "ab":
        world.put(f"{name}.csv", b"web,ok\nweb,%b\n" % name.encode())
    world.run()
    assert not verify.check(world.settings, world.store, sources=True).findings
    checked = verify.check(world.settings, world.store, sources=True, deep=True)
    (line,) = checked.findings
    (key,) = world.store.contents("lake", "compacted/")
    assert f"s3://lake/{key}: records_differ: 4 records in, 3 out: 1 record of sources" in line
    assert line.endswith(f"({PARTITION.prefix}a.csv, {PARTITION.prefix}b.csv)")
    assert json.loads(json.dumps(asdict(checked)))["deep"][0]["kind"] == "records_differ"


def test_a_source_that_another_decompressor_reads_differently_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.put("a.json.gz", b'{"a":1}\n{"a":2}\n', packed=True)
    world.put("b.json.gz", b'{"a":3}\n', packed=True)
    # A decompressor that loses a line, and then agrees with itself.
    with monkeypatch.context() as broken:
        broken.setattr(
            "compactor.outputs.plain_content.decompress_whole", lambda *_, **__: b'{"a":1}\n'
        )
        world.run()
    (line,) = verify.check(world.settings, world.store, sources=False, deep=True).findings
    assert "2 records of sources not in it, 1 in it of no source" in line


@pytest.mark.parametrize(
    ("given", "name", "content", "why"),
    [
        ({}, "json", b'[{"n":"\\ud800"}]', "Malformed JSON in file"),
    ],
)
def test_what_duckdb_cannot_read_is_reported_and_no_finding(
    given: dict[str, Any], name: str, content: bytes, why: str
) -> None:
    world = World(**given)
    for number in range(2):
        world.put(f"{number}.{name}", content)
    world.run()
    checked = verify.check(world.settings, world.store, sources=False, deep=True)
    assert (checked.findings, checked.deep) == ([], [])
    (line,) = checked.not_compared
    assert "records not compared: Invalid Input Error: " in line
    assert why in line
    assert f"{PARTITION.prefix}0.{name}" in line or f"{PARTITION.prefix}1.{name}" in line


def test_without_the_extra_checksums_are_compared_and_one_line_says_what_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compactor_cli.machine.extras.find_spec", lambda _: None)
    world, _ = world_of("JSON lines")
    checked = verify.check(world.settings, world.store, sources=False, deep=True)
    assert checked.deep is None
    assert checked.not_compared == [
        "records are not compared without pip install 's3-compactor[query]'"
    ]
    (key,) = world.store.contents("lake", "compacted/")
    world.store.seed("lake", key, b"x" + world.store.get("lake", key)[1:])
    assert verify.check(world.settings, world.store, sources=False, deep=True).findings
