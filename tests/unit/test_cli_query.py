"""``compactor query``: each record once, by SQL, whatever is in outputs and whatever is not."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor import layout
from compactor.log.columnar import Rejects
from compactor.model import Format
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.commands import main
from compactor_cli.duck import ask as ask_duckdb
from compactor_cli.queried import KINDS, Staged
from compactor_local.embedded import EmbeddedS3, SeedObject, embedded_s3
from tests.support.embedded import find_embedded
from tests.support.parquet_outputs import commit_rows

SOURCE, DESTINATION = "s3://query-source/logs/", "s3://query-lake/compacted/"
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with embedded_s3() as running:
        yield running


def put(s3: EmbeddedS3, key: str, body: bytes, days: float = 30) -> None:
    s3.seed("query-source", [SeedObject(f"logs/{key}", body, time.time() - days * 86_400)])


def lines(*numbers: int) -> bytes:
    return b"".join(json.dumps({"n": one, "deep": {"x": one}}).encode() + b"\n" for one in numbers)


@pytest.fixture(scope="module")
def compacted(s3: EmbeddedS3) -> EmbeddedS3:
    """Three days of which two are compacted; the second got an object afterwards."""
    s3.create_bucket("query-lake")
    put(s3, "dt=2026-01-01/a.json.gz", gzip.compress(lines(1, 2), mtime=0))
    put(s3, "dt=2026-01-01/b.json.gz", gzip.compress(lines(3), mtime=0))
    put(s3, "dt=2026-01-02/a.json", lines(4))
    put(s3, "dt=2026-01-02/bad.json.gz", gzip.compress(lines(5) * 99, mtime=0)[:-9])
    with pytest.MonkeyPatch.context() as patch:
        find_embedded(s3, patch)
        assert main(["run", SOURCE, DESTINATION, "--depth", "1", "--workers", "1"]) == 0
    put(s3, "dt=2026-01-02/late.json", lines(6))
    put(s3, "dt=2026-01-03/a.json", lines(7), days=0)
    return s3


@pytest.fixture
def ask(
    compacted: EmbeddedS3, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ask:
    find_embedded(compacted, monkeypatch)

    def asked(statement: str, *words: str) -> Any:
        capsys.readouterr()
        assert main(["query", DESTINATION, statement, "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    return asked


NUMBERS = "SELECT n, dt FROM records ORDER BY n"


def test_outputs_are_one_table_with_their_partitions_as_columns(ask: Ask) -> None:
    assert ask(NUMBERS) == [
        {"n": 1, "dt": "2026-01-01"},
        {"n": 2, "dt": "2026-01-01"},
        {"n": 3, "dt": "2026-01-01"},
        {"n": 4, "dt": "2026-01-02"},
    ]
    counted = "SELECT partition, sum(deep.x)::INT AS s FROM records GROUP BY 1 ORDER BY 1"
    assert ask(counted) == [
        {"partition": "dt=2026-01-01/", "s": 6},
        {"partition": "dt=2026-01-02/", "s": 4},
    ]


def test_with_the_source_each_record_is_there_once_fresh_and_late_ones_too(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask("SELECT n, dt, source_key FROM records ORDER BY n", "--exact", SOURCE)
    assert [one["n"] for one in found] == [1, 2, 3, 4, 6, 7]
    assert [one["dt"][-2:] for one in found] == ["01", "01", "01", "02", "02", "03"]
    assert [one["source_key"] for one in found[3:]] == [
        None,
        "logs/dt=2026-01-02/late.json",
        "logs/dt=2026-01-03/a.json",
    ]


def test_what_a_commit_left_alone_is_counted_and_not_read(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", DESTINATION, "SELECT 1 FROM records", "--exact", SOURCE]) == 0
    assert "left out: 1 quarantined object" in capsys.readouterr().err


def test_originals_say_which_source_a_record_is_of(ask: Ask) -> None:
    statement = "SELECT n, source_key FROM records WHERE n <> 2 ORDER BY n"
    assert ask(statement, "--originals") == [
        {"n": 1, "source_key": "logs/dt=2026-01-01/a.json.gz"},
        {"n": 3, "source_key": "logs/dt=2026-01-01/b.json.gz"},
        {"n": 4, "source_key": "logs/dt=2026-01-02/a.json"},
    ]


def test_partitions_are_chosen_by_the_beginning_of_their_paths(ask: Ask) -> None:
    below = ("--below", "dt=2026-01-02", "--exact", SOURCE)
    assert [one["n"] for one in ask(NUMBERS, *below)] == [4, 6]


def test_a_source_with_wildcards_is_read_where_it_means(ask: Ask) -> None:
    assert [one["n"] for one in ask(NUMBERS, "--exact", f"{SOURCE}dt=*/")] == [1, 2, 3, 4, 6, 7]
    assert [one["n"] for one in ask(NUMBERS, "--exact", f"{SOURCE}dt=*-03/")] == [1, 2, 3, 4, 7]


def test_rejected_records_are_counted_and_their_place_is_shown(
    s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_embedded(s3, monkeypatch)
    store = S3Store(make_client(s3.endpoint_url))
    s3.create_bucket("rejects-lake")
    put(s3, "odd/1.json", b'{"n": 1}\n{"n": "x"}\n')
    places = {"s3_source_uri": SOURCE, "s3_destination_uri": "s3://rejects-lake/compacted/"}
    settings = Settings.from_input({**places, "depth": 1, "output_format": "parquet"})
    partition = layout.partition_at(settings, "odd/")
    ((source,),) = store.list_objects("query-source", partition.prefix)
    body = b'{"source": "s3://query-source/logs/odd/1.json", "record": "x", "reason": "y"}\n'
    bucket, key = layout.rejects_key(settings, partition, "one.json")
    store.put(bucket, key, body)
    rejects = Rejects(bucket, key, len(body), zlib.crc32(body), 1)
    commit_rows(store, settings, partition, pa.table({"n": [1]}), source, rejects=rejects)
    told = "1 rejected record in no output"
    where = f"s3://{bucket}/_compactor/compacted/partitions/odd/rejects/"
    destination = places["s3_destination_uri"]
    for words in (["--exact", f"{SOURCE}od*/"], []):
        assert main(["query", destination, "SELECT n FROM records", "--json", *words]) == 0
        said = capsys.readouterr()
        assert json.loads(said.out) == [{"n": 1}]
        assert f"left out: {told}: see {where}" in said.err
    assert main(["verify", SOURCE, destination]) == 0
    said = capsys.readouterr()
    assert f"{told}, kept in" in said.out
    assert f"{where}one.json" in said.out
    assert main(["verify", SOURCE, destination, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rejected"], found["rejects"]) == (1, [f"{where}one.json"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["SELECT nothing FROM records"], "a DuckDB statement over records"),
        (
            ["SELECT 1", "--below", "dt=2025"],
            "the beginning of the path of a partition with objects",
        ),
        (["SELECT 1", "--exact", "here"], "--exact"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    ask: Ask, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["query", DESTINATION, *words, "--json"]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert told in said.err
    assert len(said.err.splitlines()) == 1


def test_without_duckdb_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("compactor_cli.machine.extras.find_spec", lambda name: None)
    assert main(["query", DESTINATION, "SELECT 1"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "pip install 's3-compactor[query]'" in said[0]


def staged(directory: Path, name: str, body: bytes, path: str = "dt=1/") -> Staged:
    file = directory / name
    file.write_bytes(body)
    return Staged(file, name.split(".")[1], path)


def test_every_kind_of_object_is_read_and_kinds_beside_each_other_are_one_table(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "p.parquet")
    given = [
        Staged(tmp_path / "p.parquet", "parquet", "dt=1/"),
        staged(tmp_path, "c.csv", b'n,text\n3,"a,b"\n', "dt=2/"),
        staged(tmp_path, "t.tsv", b"n\ttext\n4\tx y\n", "dt=3/"),
        staged(tmp_path, "l.lines.gz", gzip.compress(b'5 "odd, line\n'), "plain/"),
    ]
    statement = "SELECT n, text, line, dt, partition FROM records ORDER BY partition, n"
    found = ask_duckdb(statement, given)
    assert found.rows == [
        (1, None, None, "1", "dt=1/"),
        (2, None, None, "1", "dt=1/"),
        (3, "a,b", None, "2", "dt=2/"),
        (4, "x y", None, "3", "dt=3/"),
        (None, None, '5 "odd, line', None, "plain/"),
    ]


def test_a_record_s_own_column_goes_before_what_its_place_says(tmp_path: Path) -> None:
    given = [staged(tmp_path, "a.json", b'{"DT": "mine", "partition": 7}\n')]
    found = ask_duckdb("SELECT * FROM records", given)
    assert found.to_json() == [{"DT": "mine", "partition": 7}]


def test_types_depend_on_all_records_not_on_the_first(tmp_path: Path) -> None:
    body = b'{"n": 1}\n' * 30_000 + b'{"n": "x"}\n'
    found = ask_duckdb("SELECT count(n) FROM records", [staged(tmp_path, "a.json", body)])
    assert found.rows == [(30_001,)]


FLOW_LOG = b"version account-id start bytes\n2 123456789012 17 40\n2 123456789012 18 -\n"
ARRAYS = b'[{"n": 1},{"n": 2},\n{"n": 3}]\n'
CDN_LOG = b"#Version: 1.0\n#Fields: date time sc-bytes\n2026-01-01\t00:00:01\t7 #8\n"


def test_every_format_has_a_way_to_be_queried() -> None:
    assert set(KINDS) == set(Format)


def test_a_header_is_no_record_and_an_array_is_its_elements(tmp_path: Path) -> None:
    given = [
        staged(tmp_path, f"f.{KINDS[Format.VPC_FLOW]}", FLOW_LOG, "flow/"),
        staged(tmp_path, f"g.{KINDS[Format.VPC_FLOW]}", FLOW_LOG, "flow/"),
        staged(tmp_path, f"c.{KINDS[Format.CLOUDFRONT]}", CDN_LOG, "cdn/"),
        staged(tmp_path, f"d.{KINDS[Format.CLOUDFRONT]}.gz", gzip.compress(CDN_LOG), "cdn/"),
        staged(tmp_path, f"a.{KINDS[Format.JSON_ARRAY]}", ARRAYS, "array/"),
        staged(tmp_path, f"l.{KINDS[Format.JSON_LINES]}", b'{"n": 4}\n{"n": 5}\n', "lines/"),
    ]
    counts = "SELECT partition, count(*) FROM records GROUP BY ALL ORDER BY ALL"
    expected = [("array/", 3), ("cdn/", 2), ("flow/", 4), ("lines/", 2)]
    assert ask_duckdb(counts, given).rows == expected
    assert ask_duckdb("SELECT sum(n), sum(bytes) FROM records", given).rows == [(15, 80)]
    whole = ask_duckdb("SELECT DISTINCT line FROM records WHERE line IS NOT NULL", given)
    assert whole.rows == [("2026-01-01\t00:00:01\t7 #8",)]


def test_hundreds_of_small_objects_fit_into_memory(tmp_path: Path) -> None:
    # At the 128 MiB that a JSON value of 64 MiB needs, DuckDB would reserve 50 GB for them.
    given = [staged(tmp_path, f"{n}.json", lines(n), f"dt={n}/") for n in range(400)]
    found = ask_duckdb("SELECT count(*), sum(n) FROM records", given)
    assert found.rows == [(400, sum(range(400)))]
