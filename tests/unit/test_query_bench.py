"""The bench of queries: what it counts, compares and refuses; seconds are never looked at."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor.errors import IntegrityError, InvalidInput
from compactor_cli.local.embedded import EmbeddedS3, SeedObject, embedded_s3
from compactor_dev.query_bench import engines, layouts, sets
from compactor_dev.query_bench.access import AccessLog, Requests, requests_of
from compactor_dev.query_bench.asking import Engine, Question
from compactor_dev.query_bench.command import main
from compactor_dev.query_bench.engines import running
from compactor_dev.query_bench.lake import Filled, fill
from compactor_dev.query_bench.layouts import LAYOUTS, RAW_BUCKET
from compactor_dev.query_bench.session import Session, Turn
from compactor_dev.query_bench.sets import DAYS, QUERIES, Answers, QuerySet, seeded
from compactor_dev.query_bench.table import figures, rows
from compactor_dev.query_bench.trino_engine import TrinoEngine
from compactor_dev.trino.server import Places, Trino
from tests.spark.gate import Gate, Request, gate

TINY = QuerySet("tiny", 20, 3)


def line(ended: float, took: float, method: str, path: str, query: str = "-") -> str:
    return f"{ended}\t{took}\t{method}\t{path}\t{query}\t200\t10"


def turn(layout: str, number: int, seconds: float) -> Turn:
    return Turn("tiny", layout, "duckdb, 32", "group", number, seconds, Requests(gets=1), 0.5)


def test_requests_are_told_apart_and_those_under_way_at_once_are_counted() -> None:
    found = requests_of(
        [
            line(1.0, 0.5, "GET", "/lake/a.json"),
            line(1.2, 0.4, "GET", "/lake/b.json"),
            # It began when the first had ended.
            line(1.3, 0.3, "GET", "/lake/c.json"),
            line(1.4, 0.1, "HEAD", "/lake/c.json"),
            line(1.5, 0.1, "GET", "/lake/", "list-type=2&prefix=a"),
            line(1.6, 0.1, "GET", "/lake", "prefix=a"),
            line(1.7, 0.1, "GET", "/lake/d.json").replace("\t200\t", "\t503\t"),
        ]
    )
    assert found == Requests(gets=4, heads=1, lists=2, bytes=70, refused=1, most_gets=2)


def test_the_right_answers_are_those_that_the_objects_hold() -> None:
    answers = Answers()
    stored = list(seeded(replace(TINY, compressed=False), answers, 1e9))
    events = [json.loads(text) for one in stored for text in one.body.splitlines()]
    assert answers.of("count") == [[60]] == [[len(events)]]
    assert sum(row[1] for row in answers.of("group")) == 60
    assert sum(row[2] for row in answers.of("group")) == sum(e["level"] == "ERROR" for e in events)
    ((event_id, service, level),) = answers.of("needle")
    (needle,) = [one for one in events if one["event_id"] == event_id]
    assert (needle["service"], needle["level"]) == (service, level)
    asked = [one for one in stored if f"/{sets.day_path(sets.ASKED_DAY)}" in one.key]
    day = [json.loads(text) for one in asked for text in one.body.splitlines()]
    assert answers.of("day") == [[12, sum(one["http"]["bytes"] for one in day)]]


def test_a_table_of_two_states_names_each_day_once() -> None:
    exact = LAYOUTS["exact"].places(TINY, "group")
    assert len(exact) == DAYS
    assert [place.partition("/")[0] for place in exact] == ["query-same"] * 3 + [RAW_BUCKET] * 2
    assert LAYOUTS["raw"].places(TINY, "day") == [f"{RAW_BUCKET}/tiny/dt=2026-01-03/*.json.gz"]


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("--sets", lambda: sets.chosen("2k-3kb,none")),
        ("--layouts", lambda: layouts.chosen("zip")),
        ("--engines", lambda: engines.chosen("athena", [0])),
    ],
)
def test_unknown_names_are_refused(option: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(InvalidInput, match=f"{option}.*some of"):
        call()


def test_the_turn_that_warms_up_counts_only_where_there_is_no_other() -> None:
    turns = [turn("raw", 0, 99.0), *(turn("raw", n, 8.0 + n) for n in (1, 2, 3))]
    turns += [turn("same", 0, 50.0), turn("same", 1, 5.0), turn("zstd", 0, 5.0)]
    found = figures(turns)
    raw, same, zstd = found.values()
    assert (raw.turns, raw.median, raw.least, raw.gain) == (3, 10.0, 9.0, 1.0)
    assert (same.turns, same.median, same.gain) == (1, 5.0, 2.0)
    # What was cold is no measure of what was warm.
    assert (zstd.turns, zstd.median, zstd.cold, zstd.gain) == (1, 5.0, True, 0.0)
    shown = rows(Filled(TINY, outputs={"raw": 20}), found)
    assert [(one[2], one[3], one[4], one[6]) for one in shown] == [
        ("raw", "20", "10.00", "1.00 x"),
        ("same", "", "5.00", "2.00 x"),
        ("zstd", "", "5.00 ¹", ""),
    ]


def test_a_table_of_several_states_shows_outputs_a_list_and_sources(tmp_path: Path) -> None:
    given = replace(TINY, objects=200)
    asked = [LAYOUTS["raw"], LAYOUTS["exact"]]
    with embedded_s3(lake=True) as s3:
        glue = s3.client("glue")
        glue.create_database(DatabaseInput={"Name": "lake"})
        filled = fill(s3, given, asked, tmp_path / "runs.log", tables=True)
        assert filled.outputs == {"raw": 200, "same": DAYS}

        def locations(table: str) -> list[str]:
            pages = glue.get_partitions(DatabaseName="lake", TableName=table)["Partitions"]
            return [one["StorageDescriptor"]["Location"] for one in pages]

        shown = locations("tiny_exact")
        assert [place.split("/")[2:4] for place in shown] == [
            ["query-exact", "data"],
            ["query-exact", "data"],
            ["query-exact", "compactor-readers"],
            [RAW_BUCKET, "tiny"],
            [RAW_BUCKET, "tiny"],
        ]
        assert locations("tiny_raw") == [
            f"s3://{RAW_BUCKET}/tiny/{sets.day_path(day)}" for day in range(DAYS)
        ]


@pytest.mark.parametrize(
    ("query", "needed"), [("day", "WHERE dt = '2026-01-03'"), ("needle", "event_id = 'abc'")]
)
def test_trino_reads_the_table_of_the_layout(query: str, needed: str) -> None:
    asked: list[str] = []

    class Told(Trino):
        def ask(self, statement: str) -> list[list[Any]]:
            asked.append(statement)
            return [[1]]

    engine = TrinoEngine(Engine("trino", 32), Told("http://127.0.0.1:1"))
    answer = engine.ask(Question(query, TINY, LAYOUTS["exact"], "abc"))
    assert (answer.rows, answer.error) == ([[1]], "")
    assert '"lake"."tiny_exact"' in asked[0]
    assert needed in asked[0]


class _Log:
    """A rule of a proxy that logs requests as the bench's own server does."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._stream = path.open("w", encoding="utf-8")

    def __call__(self, request: Request) -> None:
        with self._lock:
            self._stream.write(line(1.0, 0.1, request.method, request.path, request.query) + "\n")
            self._stream.flush()


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with embedded_s3() as found:
        yield found


@pytest.fixture(scope="module")
def filled(s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    log = tmp_path_factory.mktemp("runs") / "runs.log"
    return fill(s3, TINY, [LAYOUTS["raw"], LAYOUTS["exact"]], log)


@pytest.fixture
def logged(s3: EmbeddedS3, tmp_path: Path) -> Iterator[tuple[Gate, Path]]:
    with gate(s3.endpoint_url) as proxy:
        proxy.rules.append(_Log(tmp_path / "access.log"))
        yield proxy, tmp_path / "access.log"


def test_every_layout_gives_the_same_rows_by_as_many_gets_as_it_has_objects(
    filled: Filled, logged: tuple[Gate, Path], tmp_path: Path
) -> None:
    assert filled.outputs == {"raw": 20, "same": DAYS}
    proxy, log = logged
    asked = [LAYOUTS[name] for name in ("raw", "same", "exact")]
    with running([Engine("arrow")], Places(proxy.endpoint_url, ""), tmp_path) as found:
        session = Session(AccessLog(log, 0.0), 1, 60.0)
        turns = session.measure(filled, asked, found, QUERIES)
    gets = {(one.layout, one.query): one.requests.gets for one in turns if one.number == 1}
    for query in ("count", "group", "needle"):
        assert [gets[name, query] for name in ("raw", "same", "exact")] == [20, 5, 3 + 8]
    assert [gets[name, "day"] for name in ("raw", "same", "exact")] == [4, 1, 1]
    assert not any(one.requests.refused for one in turns)


def test_a_layout_that_holds_a_record_more_ends_the_run(
    s3: EmbeddedS3, filled: Filled, logged: tuple[Gate, Path], tmp_path: Path
) -> None:
    given = replace(TINY, name="more")
    answers = Answers()
    stored = list(seeded(given, answers, 1e9))
    twice = SeedObject(stored[0].key.replace(".json", "-again.json"), stored[0].body)
    s3.seed(RAW_BUCKET, [*stored, twice])
    proxy, log = logged
    with running([Engine("arrow")], Places(proxy.endpoint_url, ""), tmp_path) as found:
        session = Session(AccessLog(log, 0.0), 1, 60.0)
        with pytest.raises(IntegrityError, match=r"more, raw, arrow, default, count: \[\[63\]\]"):
            session.measure(Filled(given, answers), [LAYOUTS["raw"]], found, QUERIES)


@pytest.fixture
def trails(real_cloudtrail: Path) -> QuerySet:
    return sets.trails_of(real_cloudtrail, 60)


def test_copies_of_cloudtrail_objects_have_event_ids_of_their_own(trails: QuerySet) -> None:
    answers = Answers()
    stored = list(seeded(trails, answers, 1e9))
    documents = [json.loads(gzip.decompress(one.body))["Records"] for one in stored]
    calls = [call for document in documents for call in document]
    assert answers.of("count") == [[len(calls)]]
    assert len({one["eventID"] for one in calls}) == len(calls) > 2_611
    # But for these they are what they were.
    first, again = documents[0], documents[44]
    assert [{**one, "eventID": ""} for one in first] == [{**one, "eventID": ""} for one in again]
    assert first != again
    assert sum(row[2] for row in answers.of("group")) == sum("errorCode" in one for one in calls)


def test_cloudtrail_is_asked_as_documents_and_as_lines_of_its_outputs(
    trails: QuerySet, s3: EmbeddedS3, logged: tuple[Gate, Path], tmp_path: Path
) -> None:
    asked = [LAYOUTS[name] for name in ("raw", "same", "exact")]
    filled = fill(s3, trails, asked, tmp_path / "runs.log")
    assert filled.outputs == {"raw": 60, "same": DAYS}
    proxy, log = logged
    with running([Engine("arrow")], Places(proxy.endpoint_url, ""), tmp_path) as found:
        session = Session(AccessLog(log, 0.0), 0, 60.0)
        turns = session.measure(filled, asked, found, QUERIES)
    gets = {(one.layout, one.query): one.requests.gets for one in turns}
    # Arrow reads one object after the other, and a large one in several ranges.
    raw, same, exact = (gets[name, "group"] for name in ("raw", "same", "exact"))
    assert raw == 60 > exact > same


def test_cloudtrail_that_cannot_be_had_is_refused(tmp_path: Path, real_cloudtrail: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--sets.*cloudtrail.*--source DIR"):
        sets.chosen("cloudtrail")
    with pytest.raises(InvalidInput, match=r"--source.*a directory with CloudTrail objects"):
        sets.trails_of(tmp_path, 60)
    with pytest.raises(InvalidInput, match=r"--objects: 4.*5 or more"):
        sets.trails_of(real_cloudtrail, 4)
    (tmp_path / "other.json.gz").write_bytes(gzip.compress(b'{"id": 1}'))
    with pytest.raises(
        InvalidInput, match=r"--source.*other\.json\.gz.*CloudTrail documents alone"
    ):
        sets.trails_of(tmp_path, 60)


@pytest.mark.parametrize(("option", "value"), [("--engines", "trino"), ("--layouts", "parquet")])
def test_what_cannot_show_all_of_cloudtrail_is_refused(
    option: str, value: str, real_cloudtrail: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--source", str(real_cloudtrail), option, value]) == 1
    assert f"{option}: '{value}'" in capsys.readouterr().err
