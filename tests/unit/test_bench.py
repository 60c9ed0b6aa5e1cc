"""One run of seconds for each scenario of the benchmark that needs neither Spark nor downloads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from compactor.errors import InvalidInput
from compactor_dev.bench import entrance, worker
from compactor_dev.bench.command import parser
from compactor_dev.bench.datasets import SETS, objects, of_output
from compactor_dev.bench.measure import in_turn, ratios
from compactor_dev.bench.queries import Answers
from compactor_dev.bench.server import front
from compactor_local.embedded import SeedObject, embedded_s3


def test_worker_and_loops_leave_equal_records(tmp_path: Path, capsys) -> None:
    words = ["worker", "--sets", "cloudtrail", "--objects", "30", "--rounds", "1", "--tls"]
    assert worker.main(parser().parse_args([*words, "--latency-ms", "1"]), tmp_path) == 0
    output = capsys.readouterr().out
    assert output.count("equal") == 8
    assert "differ" not in output


def test_every_kind_of_set_is_measured_by_the_default_candidates(tmp_path: Path, capsys) -> None:
    for name, measured in (("csv-4k", 3), ("access-4k", 3), ("rows-4k-gzip", 1), ("parquet-12", 1)):
        words = ["worker", "--sets", name, "--objects", "30", "--rounds", "1"]
        assert worker.main(parser().parse_args([*words, "--latency-ms", "1"]), tmp_path) == 0
        output = capsys.readouterr().out
        assert output.count("equal") == measured
        assert "differ" not in output


def test_a_lost_or_doubled_record_is_seen() -> None:
    data_set = replace(SETS["json-4k-gzip"], objects=3)
    found = list(objects(data_set))
    whole = found[0].records + found[1].records
    kind = data_set.kind
    assert of_output(found[1].body + found[0].body, kind) == whole
    assert of_output(found[0].body, kind) != whole
    assert of_output(found[0].body + found[1].body + found[1].body, kind) != whole
    assert of_output(found[0].body + found[1].body[:-9], kind) != whole


def test_an_unknown_commit_is_refused(tmp_path: Path) -> None:
    args = parser().parse_args(["worker", "--sets", "json-4k", "--against", "no-such-commit"])
    with pytest.raises(InvalidInput, match="a commit of this repository"):
        worker.main(args, tmp_path)


def test_the_front_answers_as_the_s3_upstream_and_counts(tmp_path: Path) -> None:
    body = bytes(range(250))
    with embedded_s3() as s3:
        s3.seed("read", [SeedObject("a/dt=1/x.json", body)])
        s3.create_bucket("written")
        with front(s3, tmp_path, ["read"], 5.0) as running, running.counted() as requests:
            client: Any = boto3.client(
                "s3",
                endpoint_url=running.endpoints[running.plain],
                aws_access_key_id="embedded",
                aws_secret_access_key="embedded",
                region_name="us-east-1",
            )
            for _ in range(2):
                listed = client.list_objects_v2(Bucket="read", Prefix="a/")
                assert [one["Key"] for one in listed["Contents"]] == ["a/dt=1/x.json"]
            where = {"Bucket": "read", "Key": "a/dt=1/x.json"}
            assert client.get_object(**where)["Body"].read() == body
            assert client.get_object(**where, Range="bytes=10-19")["Body"].read() == body[10:20]
            assert client.get_object(**where, Range="bytes=-5")["Body"].read() == body[-5:]
            assert client.head_object(**where)["ContentLength"] == 250
            client.put_object(Bucket="written", Key="y", Body=body)
            assert client.get_object(Bucket="written", Key="y")["Body"].read() == body
    (seen,) = requests
    assert (seen.gets, seen.heads, seen.lists, seen.most_gets) == (3, 1, 2, 1)


def test_answers_of_queries_are_counted_while_objects_are_made() -> None:
    answers = Answers()
    line = b'{"event_id":"%d","level":"%s","service":"s","http":{"bytes":7},"other":1}\n'
    answers.add(line % (1, b"ERROR") + line % (2, b"INFO"), has_needle=True)
    assert answers.of("count") == [[2]]
    assert answers.of("group") == [["s", 2, 1, 14]]
    assert answers.of("needle") == [["2", "s", "INFO"]]


def test_the_often_described_way_loses_nothing_but_doubles(tmp_path: Path, capsys) -> None:
    words = ["entrance", "--objects", "24", "--rows", "5", "--ways", "as described"]
    assert entrance.main(parser().parse_args(words), tmp_path) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "as described" in one]
    rows, doubled, lost = (int(cell) for cell in re.split(r"  +", line)[1:4])
    assert rows == 24 * 5 + doubled
    assert doubled > 0
    assert lost == 0


def test_candidates_take_their_turns_and_ratios_are_of_a_round() -> None:
    assert [in_turn("ab", number) for number in (1, 2, 3, 4)] == [
        ["a", "b"],
        ["b", "a"],
        ["b", "a"],
        ["a", "b"],
    ]
    found = ratios({1: 2.0, 2: 20.0, 3: 1.0}, {1: 1.0, 2: 10.0})
    assert found is not None
    assert (found.low, found.median, found.high) == (2.0, 2.0, 2.0)
