"""One run of seconds for the scenario of the benchmark that needs no downloads."""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import pytest

from compactor.discovery.speed import CLOUDTRAIL_GZIP, SPEEDS, WorkerSpeed
from compactor.errors import InvalidInput
from compactor_dev.bench import worker
from compactor_dev.bench.__main__ import parser
from compactor_dev.bench.datasets import SETS, objects, of_output
from compactor_dev.bench.front import Front
from compactor_dev.bench.measure import Taken, in_turn, ratios
from compactor_dev.bench.queries import Answer
from compactor_dev.bench.worker import PAIRS, WORKER, Measurement, solve


def arguments(*words: str) -> argparse.Namespace:
    return parser().parse_args(["worker", "--rounds", "1", "--latency-ms", "1", *words])


@pytest.mark.parametrize(
    ("name", "candidates"), [("cloudtrail", 2), ("csv-4k", 2), ("rows-4k-gzip", 1)]
)
def test_worker_and_loop_leave_equal_records(
    name: str, candidates: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert worker.main(arguments("--sets", name, "--objects", "30"), tmp_path) == 0
    output = capsys.readouterr().out
    assert output.count("| equal |") == candidates
    assert "differ" not in output


def test_a_lost_or_doubled_record_is_seen() -> None:
    data_set = SETS["json-4k-gzip"].reduced(3)
    first, second, _ = objects(data_set)
    both = first.records.plus(second.records)
    kind = data_set.kind
    assert of_output(second.body + first.body, kind) == both
    assert of_output(first.body, kind) != both
    assert of_output(first.body + second.body + second.body, kind) != both
    assert of_output(first.body + second.body[:-9], kind) != both


def test_an_unknown_commit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a commit of this repository"):
        worker.main(arguments("--against", "no-such-commit"), tmp_path)


def test_the_front_answers_as_an_s3_and_counts() -> None:
    body = bytes(range(250))
    with Front(1.0) as front:
        client = front.client()
        for name in ("a/1", "a/b/2", "a/b/3", "a/c", "d"):
            front.put("read", name, body, 1.0)
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket="read", Prefix="a/", Delimiter="/", PaginationConfig={"PageSize": 1}
        )
        listed = [
            entry.get("Key") or entry["Prefix"]
            for page in pages
            for entry in (*page.get("CommonPrefixes", ()), *page.get("Contents", ()))
        ]
        assert listed == ["a/1", "a/b/", "a/c"]
        for wanted, part in (("bytes=10-19", body[10:20]), ("bytes=-5", body[-5:])):
            answer = client.get_object(Bucket="read", Key="a/1", Range=wanted)
            assert answer["Body"].read() == part
        assert client.head_object(Bucket="read", Key="a/1")["ContentLength"] == 250
        client.create_bucket(Bucket="written")
        client.put_object(Bucket="written", Key="y", Body=body)
        assert client.get_object(Bucket="written", Key="y")["Body"].read() == body
        counts = front.requests
        assert (counts["GET"], counts["HEAD"], counts["LIST"]) == (2, 1, 3)


def test_answers_of_queries_are_counted_while_objects_are_made() -> None:
    (stored,) = objects(SETS["json-4k-gzip"].reduced(1))
    answer = Answer()
    answer.add(zlib.decompress(stored.body, 31))
    assert sum(row[1] for row in answer.rows()) == SETS["json-4k-gzip"].rows


def test_candidates_take_their_turns_and_ratios_are_of_a_round() -> None:
    turns = [in_turn("ab", number) for number in (1, 2, 3, 4)]
    assert turns == [["a", "b"], ["b", "a"], ["b", "a"], ["a", "b"]]
    spread = ratios({1: 2.0, 2: 20.0, 3: 1.0}, {1: 1.0, 2: 10.0})
    assert spread is not None
    assert (spread.low, spread.median, spread.high) == (2.0, 2.0, 2.0)


def measured(objects: int, object_bytes: int, seconds: float) -> Measurement:
    return Measurement(
        candidate=WORKER,
        round=1,
        objects=objects,
        bytes_in=objects * object_bytes,
        bytes_out=0,
        taken=Taken(seconds + 0.5, seconds, 0.0, 0.0),
        start_seconds=0.5,
        peak_bytes=1,
        is_equal=True,
        second_run={},
    )


def test_speeds_are_solved_from_two_sets_of_each_kind() -> None:
    results = {
        name: [measured(objects, size, objects * (1.995e-4 + size * 1.15e-8))]
        for small, large in PAIRS.values()
        for name, objects, size in ((small, 10_000, 4_000), (large, 1_000, 100_000))
    }
    speed = WorkerSpeed(per_million_objects=200, per_gb=12)
    assert solve(results, WORKER) == dict.fromkeys(PAIRS, speed)
    del results["cloudtrail"]
    assert set(solve(results, WORKER)) == SPEEDS.keys() - {CLOUDTRAIL_GZIP}


def test_every_pair_names_known_sets_that_differ_in_size_alone() -> None:
    for small, large in PAIRS.values():
        one, other = SETS[small], SETS[large]
        assert (one.kind, one.is_gzip, one.to_rows) == (other.kind, other.is_gzip, other.to_rows)
        assert one.rows < other.rows
