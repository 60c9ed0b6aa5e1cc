"""``compactor query``: SQL over outputs, or a sentence if DuckDB reads other than what is there."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.errors import InvalidInput
from compactor.log.entries import Output
from compactor.model import Compression, Format, TableDialect
from compactor_cli.commands import main
from compactor_cli.commands.failures import Failure
from compactor_cli.commit_logs import all_logs
from compactor_cli.duck import ask
from compactor_local.embedded import EmbeddedS3, SeedObject, embedded_s3
from tests.support.demo_sources import SAME_RECORDS_OTHERWISE, compacted
from tests.support.embedded import find_embedded
from tests.support.examples import NOW, columns
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.world import World


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with embedded_s3() as running:
        yield running


def rows_of(world: World, statement: str = "SELECT * EXCLUDE (_object) FROM records") -> Any:
    logs = all_logs(world.settings.state, world.store)
    commits = [commit for log in logs for commit in log.newest_first(world.store)]
    outputs = [commit.output for commit in commits if commit.output is not None]
    return ask(statement, outputs, world.store)[1]


@pytest.mark.parametrize("name", SAME_RECORDS_OTHERWISE)
def test_every_record_is_a_row(name: str) -> None:
    sources, records = SAME_RECORDS_OTHERWISE[name]
    assert rows_of(compacted(sources), "SELECT count(*) FROM records") == [(records,)]


def test_a_number_sign_begins_no_comment() -> None:
    header = b"ticket,price,at\n"
    world = compacted(
        {
            f"{n}.csv": header
            + b"".join(b"%s%d,1.5,2024-01-0%d\n" % (mark, n, n) for mark in (b"#", b"", b"#x"))
            for n in (1, 2, 3)
        }
    )
    found = rows_of(world, 'SELECT ticket, price, "at" FROM records ORDER BY ALL')
    assert len(found) == 9
    assert found[0] == ("#1", "1.5", "2024-01-01")


def test_values_of_tables_are_as_they_were_written() -> None:
    rows = b'id,zip,note\n1%d,01234,"a ""b"", c"\n2%d,+49,\n'
    world = compacted({f"{n}.csv": rows % (n, n) for n in range(3)})
    found = rows_of(world, "SELECT zip, note FROM records WHERE id::INT IN (10, 20) ORDER BY id")
    assert found == [("01234", 'a "b", c'), ("+49", None)]


def test_the_first_row_of_a_table_without_a_header_is_a_row() -> None:
    world = World(formats=columns(header=False))
    world.put("a.csv", b"berlin1,ann\nberlin2,bob\n")
    world.put("b.csv", b"berlin3,eve\n")
    assert world.run().status == "done"
    found = rows_of(world, "SELECT column0, column1 FROM records ORDER BY ALL")
    assert found == [("berlin1", "ann"), ("berlin2", "bob"), ("berlin3", "eve")]


def test_a_record_of_a_cloudtrail_document_is_a_row_with_its_own_columns() -> None:
    def document(first: int) -> bytes:
        records = [{"eventID": str(first + n), "userIdentity": {"type": "Root"}} for n in (0, 1)]
        return gzip.compress(json.dumps({"Records": records}).encode(), mtime=0)

    world = compacted({f"{n}.json.gz": document(2 * n) for n in range(3)})
    found = rows_of(world, "SELECT eventID, userIdentity.type FROM records ORDER BY 1")
    assert found == [(str(n), "Root") for n in range(6)]


def test_helper_columns_do_not_take_the_names_of_the_users() -> None:
    world = compacted(
        {
            "a.json": b'{"filename": "mine", "partition": 7, "_object": 1}\n',
            "b.json": b'{"filename": "yours", "partition": 8, "_object": 2}\n',
        }
    )
    found = rows_of(world, "SELECT * FROM records ORDER BY filename")
    assert [row[:3] for row in found] == [("mine", 7, 1), ("yours", 8, 2)]
    assert found[0][3].startswith("s3://lake/compacted/")


def test_lines_of_both_kinds_long_ones_and_blank_ones_are_rows_as_they_are() -> None:
    time = b"2026-01-02T03:04:05Z "
    lines = [time + b'a "quote, # and \x1f', time + b"x" * 3_000_000, time + b"b", time + b"c"]
    world = compacted(
        {
            "lf.log": lines[0] + b"\n\n" + lines[1] + b"\n",
            "crlf.log": lines[2] + b"\r\n" + lines[3] + b"\r\n",
        }
    )
    found = rows_of(world, "SELECT line FROM records")
    assert sorted(row[0].encode() for row in found) == sorted([b"", *lines])


def stored(store: MemoryStore, name: str, body: bytes, records: int, format: Format) -> Output:
    key = f"compacted/{name}"
    store.seed("lake", key, body)
    size = len(body)
    return Output("lake", key, "", (), size, None, size, records, format, Compression.NONE)


@pytest.mark.parametrize(
    ("odd", "records", "told"),
    [
        (b'{"a":1,"a":2}\n', 1, "duplicate"),
        (b'{"a": "\xff"}\n', 1, ""),
        (b'{"a": 1}\n{"a": 3}\n', 3, "DuckDB reads 2 rows of its 3 records"),
        (b'{"a": 1}\n{"a": 3}\n', 1, "DuckDB reads 2 rows of its 1 records"),
    ],
)
def test_one_odd_output_makes_one_sentence_that_names_it(
    odd: bytes, records: int, told: str
) -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    lines = Format.JSON_LINES
    outputs = [stored(store, f"{n}.json", b'{"a": 1}\n', 1, lines) for n in range(3)]
    outputs.insert(1, stored(store, "odd[1]*.json", odd, records, lines))
    with pytest.raises(Failure) as caught:
        ask("SELECT count(*) FROM records", outputs, store)
    assert str(caught.value).startswith("s3://lake/compacted/odd[1]*.json cannot be queried: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_output_that_is_not_published_is_named() -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    output = stored(store, "a.json", b'{"a": 1}\n', 1, Format.JSON_LINES)
    missing = replace(output, key="compacted/b.json")
    with pytest.raises(Failure, match=r"^s3://lake/compacted/b\.json cannot be queried: "):
        ask("SELECT count(*) FROM records", [output, missing], store)


def test_outputs_of_several_formats_are_one_table() -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": [1, 2]}), sink)
    outputs = [
        stored(store, "p.parquet", sink.getvalue(), 2, Format.PARQUET),
        replace(
            stored(store, "c.csv", b'n,text\n3,"a,b"\n', 1, Format.CSV),
            table=TableDialect(",", header=True),
        ),
        replace(
            stored(store, "t.tsv", b"n\ttext\n4\tx y\n", 1, Format.TSV),
            table=TableDialect("\t", header=True),
        ),
        stored(store, "l.log", b'5 "odd, line\n', 1, Format.TEXT),
        stored(store, "a.json", b'[{"n": 6},\n{"n": 7}]\n', 2, Format.JSON_ARRAY),
        stored(store, "c.log", b"#Version: 1.0\n2026-01-01\t7 #8\n", 1, Format.CLOUDFRONT),
    ]
    _, rows = ask("SELECT n::INT, text, line FROM records ORDER BY ALL", outputs, store)
    assert rows == [
        (1, None, None),
        (2, None, None),
        (3, "a,b", None),
        (4, "x y", None),
        (6, None, None),
        (7, None, None),
        (None, None, "2026-01-01\t7 #8"),
        (None, None, '5 "odd, line'),
    ]


def test_an_invalid_statement_is_refused_with_what_duckdb_says() -> None:
    world = compacted({"a.json": b'{"a": 1}\n'})
    with pytest.raises(InvalidInput, match="a DuckDB statement over records"):
        rows_of(world, "SELECT nothing FROM records")


def test_the_command_prints_rows_of_the_chosen_partitions(
    s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_embedded(s3, monkeypatch)
    s3.create_bucket("query-lake")
    arrived = time.time() - 86_400
    sources = [
        SeedObject(f"logs/{path}/{n}.json", b'{"n": %d, "day": "2026-01-02"}\n' % n, arrived)
        for path, n in (("odd", 1), ("odd", 3), ("even", 2), ("even", 4))
    ]
    s3.seed("query-source", sources)
    destination = "s3://query-lake/compacted/"
    words = ("--depth", "1", "--workers", "1", "--endpoint-url", s3.endpoint_url)
    assert main(["run", "s3://query-source/logs/", destination, *words]) == 0
    capsys.readouterr()
    statement = "SELECT n, day::DATE AS day FROM records ORDER BY n"
    assert main(["query", destination, statement, "--json", "--below", "od"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"n": 1, "day": "2026-01-02"},
        {"n": 3, "day": "2026-01-02"},
    ]
    assert main(["query", destination, statement, "--below", "odder"]) == 2
    assert "the beginning of the path of a partition with outputs" in capsys.readouterr().err


def test_without_duckdb_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("compactor_cli.machine.extras.find_spec", lambda name: None)
    assert main(["query", "s3://lake/compacted/", "SELECT 1"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "pip install 's3-compactor[query]'" in said[0]
