"""One run of seconds for the scenario of the benchmark that needs no engine, and its parts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.money.estimate import CLOUDTRAIL_GZIP, SPEEDS, WorkerSpeed
from compactor_dev.bench.__main__ import main
from compactor_dev.bench.datasets import SETS, Records, objects
from compactor_dev.bench.front import Front
from compactor_dev.bench.measure import in_turn, ratios
from compactor_dev.bench.worker import Measurement, Result, speeds

WORKER = "worker"


def test_worker_and_loop_leave_equal_records(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sets", "cloudtrail", "csv-4k", "rows-4k-gzip", "--objects", "30"]
    assert main(["worker", "--rounds", "1", "--latency-ms", "1", *words]) == 0
    output = capsys.readouterr().out
    assert output.count("| equal |") == 3
    assert "differ" not in output


@pytest.mark.parametrize("name", ["json-4k-gzip", "cloudtrail", "parquet-12"])
def test_a_lost_or_doubled_record_is_seen(name: str) -> None:
    data_set = replace(SETS[name], objects=2)
    first, second = (source.body for source in objects(data_set))
    both = Records().plus(first, data_set).plus(second, data_set)
    assert Records().plus(second, data_set).plus(first, data_set) == both
    assert Records().plus(first, data_set) != both
    assert both.plus(second, data_set) != both


def test_an_unknown_commit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--against", "no-such-commit"]) == 1
    assert "a commit of this repository" in capsys.readouterr().err


def test_the_front_answers_as_an_s3_and_counts() -> None:
    body = bytes(range(250))
    with Front(1.0) as front:
        for name in ("a/1", "a/b/2", "a/b/3", "a/c", "d"):
            front.put("read", name, body, 1.0)
        client = front.bucket("read").meta.client
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
        assert front.requests == 6
        written = front.bucket("written")
        written.create()
        written.put_object(Key="y", Body=body)
        assert written.Object("y").get()["Body"].read() == body


def test_candidates_take_their_turns_and_ratios_are_of_a_round() -> None:
    assert [in_turn("ab", number) for number in (1, 2, 3, 4)] == ["ab", "ba", "ba", "ab"]
    assert ratios([2.0, 20.0], [1.0, 10.0]) == "2.00 (2.00 to 2.00)"


def test_speeds_are_solved_from_two_sets_of_each_kind() -> None:
    results = []
    for data_set in SETS.values():
        size = data_set.records * 300
        seconds = data_set.objects * (1.995e-4 + size * 1.15e-8)
        measurement = Measurement(seconds + 0.5, seconds, 0.5, 1, is_equal=True)
        results.append(Result(data_set, data_set.objects * size, {WORKER: [measurement]}))
    speed = WorkerSpeed(per_million_objects=200, per_gb=12)
    assert speeds(results, WORKER) == dict.fromkeys(SPEEDS, speed)
    results = [result for result in results if result.data_set != SETS["cloudtrail"]]
    assert set(speeds(results, WORKER)) == SPEEDS.keys() - {CLOUDTRAIL_GZIP}


def test_the_two_sets_of_a_speed_differ_in_size_alone() -> None:
    for speed in SPEEDS:
        small, large = (data_set for data_set in SETS.values() if data_set.speed == speed)
        assert small.records != large.records
        assert small == replace(large, objects=small.objects, records=small.records)
