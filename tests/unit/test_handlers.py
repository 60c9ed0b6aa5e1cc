"""The handlers as Lambda calls them: an event in, JSON out, against an S3 server."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from compactor.catalogs.readers import open_readers
from compactor.clock import SystemClock
from compactor.errors import InvalidInput
from compactor.invocation import kept_store
from compactor.limits import WorkerLimits
from compactor.settings.settings import Settings
from compactor_handlers import compact_partition, discover, report, runtime
from tests.support.moto_server import moto_server

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

STARTED = "2026-01-03T00:00:00Z"
_numbers = count()


@dataclass
class Context:
    """Lambda's context; ``remaining`` is called for the milliseconds left."""

    function_name: str = "compact_partition"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:compact_partition"
    aws_request_id: str = "00000000-0000-0000-0000-000000000000"
    milliseconds: tuple[int, ...] = (900_000,)

    def get_remaining_time_in_millis(self) -> int:
        """The next of the given times; the last one for ever."""
        first, *others = self.milliseconds
        if others:
            self.milliseconds = tuple(others)
        return first


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Client]:
    """A client, and the environment a function would find the endpoint in."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    kept_store.cache_clear()
    client: S3Client = boto3.client("s3", endpoint_url=endpoint)
    yield client
    kept_store.cache_clear()


@dataclass
class Place:
    """A source and a destination bucket."""

    s3: S3Client
    source: str
    lake: str

    def put(self, key: str, body: bytes) -> None:
        self.s3.put_object(Bucket=self.source, Key=key, Body=io.BytesIO(body))

    def contents(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return {k: self.s3.get_object(Bucket=bucket, Key=k)["Body"].read() for k in keys}

    def input(self, **given: Any) -> dict[str, Any]:
        return {
            "s3_source_uri": f"s3://{self.source}/logs/",
            "s3_destination_uri": f"s3://{self.lake}/compacted/",
            "depth": 1,
            "settle_seconds": 0,
            **given,
        }

    def discover(self, **given: Any) -> dict[str, Any]:
        event = {"input": self.input(**given), "run_id": "run-1", "started_at": STARTED}
        return answer_of(discover.handler, event)

    def items(self, found: dict[str, Any]) -> list[dict[str, Any]]:
        where = found["items"]
        body = self.s3.get_object(Bucket=where["bucket"], Key=where["key"])["Body"].read()
        items: list[dict[str, Any]] = json.loads(body)
        return items

    def compact(
        self, found: dict[str, Any], item: dict[str, Any], *milliseconds: int, **more: Any
    ) -> dict[str, Any]:
        event = {"run_id": "run-1", "settings": found["settings"], "partition": item, **more}
        context = Context(milliseconds=milliseconds or (900_000,))
        return answer_of(compact_partition.handler, event, context)


def answer_of(
    handler: Any, event: dict[str, Any], context: Context | None = None
) -> dict[str, Any]:
    """What the next state would get: events and answers pass through JSON."""
    answer = handler(json.loads(json.dumps(event)), context or Context())
    passed_on: dict[str, Any] = json.loads(json.dumps(answer, allow_nan=False))
    return passed_on


@pytest.fixture
def place(s3: S3Client) -> Place:
    number = next(_numbers)
    made = Place(s3, f"source-{number}", f"lake-{number}")
    for bucket in (made.source, made.lake):
        s3.create_bucket(Bucket=bucket)
    return made


@pytest.fixture
def logs(place: Place) -> Place:
    """Two partitions: three groups, one broken source."""
    for number in range(4):
        place.put(f"logs/a/{number}.json", b'{"id": %d}\n' % number)
    place.put("logs/a/5.log", b"2026-01-02 03:04:05 line\n")
    place.put("logs/b/1.log.gz", gzip.compress(b"2026-01-02 03:04:05 line\n", mtime=0))
    place.put("logs/b/2.log.gz", gzip.compress(b"2026-01-02 03:04:05 line\n", mtime=0)[:-5])
    return place


def emitted(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The metrics documents (EMF) on standard output."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    return [document for document in map(json.loads, lines) if "_aws" in document]


def metrics_of(document: dict[str, Any]) -> dict[str, float]:
    (told,) = document["_aws"]["CloudWatchMetrics"]
    assert told["Namespace"] == "s3-compactor"
    assert document["service"] == "s3-compactor"
    assert document["_aws"]["Timestamp"] > 1_600_000_000_000
    return {one["Name"]: sum(document[one["Name"]]) for one in told["Metrics"]}


def test_discover_shows_where_the_work_lists_lie(
    logs: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    found = logs.discover()
    told = [metrics_of(one) for one in emitted(capsys) if "ColdStart" not in one]
    assert told == [{"WorkItems": 2}]
    assert (found["run_id"], found["started_at"], found["lags"]) == ("run-1", STARTED, False)
    assert found["item_count"] == 2
    assert found["run_uri"] == f"s3://{logs.lake}/_compactor/compacted/runs/run-1/"
    assert found["max_concurrency"] == 100
    assert [i["path"] for i in logs.items(found)] == ["a/", "b/"]
    again = answer_of(
        discover.handler, {"input": found["settings"], "run_id": "run-2", "started_at": STARTED}
    )
    assert again["settings"] == found["settings"]


def test_an_input_that_names_no_spark_gets_the_one_it_is_deployed_with(
    logs: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTOR_SPARK", "j-A1")
    assert logs.discover()["settings"]["spark_engine"] == "j-A1"
    assert logs.discover(spark_engine="none")["settings"]["spark_engine"] == "none"


def test_discover_without_objects_has_no_work(place: Place) -> None:
    found = place.discover()
    assert found["item_count"] == 0
    assert place.items(found) == []


def test_a_run_from_event_to_report(logs: Place, capsys: pytest.CaptureFixture[str]) -> None:
    found = logs.discover()
    answers = [logs.compact(found, item) for item in logs.items(found)]
    assert [one["status"] for one in answers] == ["done", "done"]
    assert [one["counts"]["objects_in"] for one in answers] == [5, 1]
    outputs = logs.contents(logs.lake, "compacted/")
    assert sorted(key.split("/")[1] for key in outputs) == ["a", "a", "b"]
    capsys.readouterr()
    event = {"run_id": "run-1", "started_at": STARTED, "settings": found["settings"]}
    verdict = answer_of(report.handler, event)
    assert (verdict["status"], verdict["cause"]) == ("succeeded", "")
    assert verdict["totals"]["objects_in"] == 6
    assert verdict["totals"]["quarantined"] == 1
    assert verdict["failed_partitions"] == verdict["oversized_partitions"] == 0
    (told,) = emitted(capsys)
    assert metrics_of(told) == {"RunsFailed": 0, "Partitions": 2}
    where = verdict["report"]
    stored = logs.s3.get_object(Bucket=where["bucket"], Key=where["key"])["Body"].read()
    assert json.loads(stored)["totals"] == verdict["totals"]


@pytest.fixture
def glue(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the catalog that functions find in their environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", endpoint)
    open_readers.cache_clear()
    yield boto3.client("glue", endpoint_url=endpoint)
    open_readers.cache_clear()


def test_the_report_counts_what_query_engines_are_shown_and_what_they_are_not(
    place: Place, glue: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        place.put(f"logs/{name}/1.json", b'{"id": 1}\n')

    def run() -> dict[str, float]:
        found = place.discover(reader_table="glue:lake.logs")
        for item in place.items(found):
            place.compact(found, item)
        capsys.readouterr()
        event = {"run_id": "run-1", "started_at": STARTED, "settings": found["settings"]}
        assert answer_of(report.handler, event)["status"] == "succeeded"
        return metrics_of(emitted(capsys)[-1])

    # Its database is not there.
    without = run()
    glue.create_database(DatabaseInput={"Name": "lake"})
    shown = run()

    assert (without["SwitchedPartitions"], without["UnshownPartitions"]) == (0, 2)
    assert (shown["SwitchedPartitions"], shown["UnshownPartitions"]) == (2, 0)


def test_a_second_run_reads_no_source_and_writes_no_output(logs: Place) -> None:
    found = logs.discover()
    for item in logs.items(found):
        logs.compact(found, item)
    before = logs.contents(logs.lake, "compacted/")
    for item in logs.items(found):
        again = logs.compact(found, item, run_id="run-2")
        assert again["status"] == "done"
        assert again["counts"]["objects_in"] == 0
    assert logs.contents(logs.lake, "compacted/") == before


def test_a_call_with_little_time_left_begins_nothing_and_asks_for_more(logs: Place) -> None:
    found = logs.discover()
    (item, _) = logs.items(found)
    answer = logs.compact(found, item, 20_000)
    assert answer["status"] == "more"
    assert answer["counts"]["calls"] == 1
    assert answer["partition"] == item
    assert answer["settings"] == found["settings"]
    assert logs.contents(logs.lake, "compacted/") == {}
    event = {**answer}
    finished = answer_of(compact_partition.handler, event)
    assert finished["status"] == "done"
    assert finished["counts"]["calls"] == 2
    assert finished["counts"]["objects_in"] == 5


def test_a_call_begins_nothing_after_ten_minutes_though_lambda_would_give_five_more(
    logs: Place,
) -> None:
    found = logs.discover()
    (item, _) = logs.items(found)
    # At the start of store and working time; then 550 s have gone.
    answer = logs.compact(found, item, 900_000, 900_000, 350_000)
    assert answer["status"] == "more"
    assert logs.contents(logs.lake, "compacted/") == {}
    # 500 s have gone.
    answer = logs.compact(found, item, 900_000, 900_000, 400_000)
    assert (answer["status"], answer["counts"]["objects_in"]) == ("done", 5)


def test_the_working_time_is_what_limits_say_or_less_where_lambda_gives_less() -> None:
    settings = Settings.from_input(
        {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}
    )
    long = runtime.WorkingTime(Context(milliseconds=(900_000, 900_000, 340_000, 310_000)), settings)
    assert [long.remaining_seconds() for _ in range(3)] == [570, 10, -20]
    short = runtime.WorkingTime(Context(milliseconds=(300_000, 300_000, 40_000)), settings)
    assert [short.remaining_seconds() for _ in range(2)] == [300, 40]


def test_calls_that_run_out_of_time_add_up_and_their_metrics_do_too(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    # Each is a group of its own.
    for end in ("json", "json.gz", "json.zst", "log", "log.gz"):
        place.put(f"logs/a/1.{end}", b'{"id": 1}\n')
    found = place.discover()
    (item,) = place.items(found)
    event: dict[str, Any] = {
        "run_id": "run-1",
        "settings": found["settings"],
        "partition": item,
    }
    capsys.readouterr()
    told: list[dict[str, float]] = []
    for _ in range(20):
        # Store and working time ask once; then there is time for what begins a call, and one group.
        context = Context(milliseconds=(900_000, 900_000, 900_000, 900_000, 1_000))
        event = answer_of(compact_partition.handler, event, context)
        told += map(metrics_of, emitted(capsys))
        if event["status"] == "done":
            break
    counts = event["counts"]
    assert (event["status"], counts["objects_in"], counts["objects_out"]) == ("done", 5, 5)
    assert counts["calls"] == len(told) > 2
    for name, total in (
        ("ObjectsIn", 5),
        ("ObjectsOut", 5),
        ("Groups", 5),
        ("BytesIn", counts["bytes_in"]),
        ("BytesOut", counts["bytes_out"]),
        ("Conflicts", 0),
        ("QuarantinedObjects", 0),
    ):
        assert sum(one[name] for one in told) == total, name
    assert sum(one["Seconds"] for one in told) == pytest.approx(counts["seconds"])


def test_metrics_have_units(logs: Place, capsys: pytest.CaptureFixture[str]) -> None:
    found = logs.discover()
    capsys.readouterr()
    logs.compact(found, logs.items(found)[1])
    (document,) = emitted(capsys)
    (told,) = document["_aws"]["CloudWatchMetrics"]
    units = {one["Name"]: one["Unit"] for one in told["Metrics"]}
    assert units == {
        "ObjectsIn": "Count",
        "ObjectsOut": "Count",
        "Groups": "Count",
        "Conflicts": "Count",
        "QuarantinedObjects": "Count",
        "BytesIn": "Bytes",
        "BytesOut": "Bytes",
        "Seconds": "Seconds",
    }
    assert metrics_of(document)["QuarantinedObjects"] == 1


MISTAKES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"s3_source_uri": "no uri"}, "s3_source_uri"),
    ({"s3_destination_uri": None}, "s3_destination_uri"),
    ({"window": "-1d", "date_format": "%Y", "depth": 0}, "window"),
    ({"colour": "red"}, "colour"),
    ({"s3_source_uri": "s3://no-such-bucket/logs/"}, "s3_source_uri"),
    ({"s3_destination_uri": "s3://no-such-bucket/compacted/"}, "s3_destination_uri"),
)


@pytest.mark.parametrize(("given", "field"), MISTAKES)
def test_a_mistake_in_the_input_ends_discovery_under_the_name_the_workflow_knows(
    place: Place, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        place.discover(**given)
    # Step Functions matches the name of the class.
    assert type(caught.value).__name__ == "InvalidInput"
    assert caught.value.field == field


def test_an_event_that_is_no_work_item_is_refused(place: Place) -> None:
    found = place.discover()
    with pytest.raises(InvalidInput, match="item"):
        place.compact(found, {"path": "a/"})


def test_a_lost_worker_fails_the_report(logs: Place, capsys: pytest.CaptureFixture[str]) -> None:
    found = logs.discover()
    logs.compact(found, logs.items(found)[0])
    capsys.readouterr()
    event = {"run_id": "run-1", "started_at": STARTED, "settings": found["settings"]}
    verdict = answer_of(report.handler, event)
    assert (verdict["status"], verdict["failed_partitions"]) == ("failed", 1)
    assert verdict["cause"].startswith("b/: WorkerLost")
    assert metrics_of(emitted(capsys)[-1])["RunsFailed"] == 1


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        ({"Error": "States.Timeout", "Cause": "too long"}, "States.Timeout: too long"),
        ({"Error": "Boom", "Cause": ""}, "Boom"),
        ({"Error": "Boom"}, "Boom"),
        ({}, ""),
        (None, ""),
    ],
)
def test_what_ended_the_workflow_is_the_cause_of_its_report(
    place: Place, failure: dict[str, str] | None, cause: str
) -> None:
    found = place.discover()
    event = {"run_id": "run-1", "started_at": STARTED, "settings": found["settings"]}
    verdict = answer_of(report.handler, {**event, "failure": failure})
    assert (verdict["status"], verdict["cause"]) == ("failed" if cause else "succeeded", cause)


def test_a_spark_failure_is_reported_with_the_jobs_own_line(place: Place) -> None:
    found = place.discover()
    line = json.dumps({"error": "SchemaClash", "cause": "column id: int and string"}).encode()
    place.s3.put_object(
        Bucket=place.lake, Key="_compactor/compacted/runs/run-1/spark-error.json", Body=line
    )
    event = {"run_id": "run-1", "started_at": STARTED, "settings": found["settings"]}
    failure = {"Error": "States.TaskFailed", "Cause": "Unknown Error."}
    verdict = answer_of(report.handler, {**event, "failure": None, "spark_failure": failure})
    assert verdict["status"] == "failed"
    assert verdict["cause"] == "Spark: SchemaClash: column id: int and string"


def test_a_worker_leaves_to_spark_what_is_more_than_it_takes(logs: Place) -> None:
    size = sum(len(body) for body in logs.contents(logs.source, "logs/a/").values())
    found = logs.discover(lambda_max_bytes=size)
    answers = {item["path"]: logs.compact(found, item) for item in logs.items(found)}
    assert {path: one["oversized"] for path, one in answers.items()} == {"a/": False, "b/": True}
    bucket, prefix = found["oversized"]["bucket"], found["oversized"]["prefix"]
    assert [json.loads(one)["path"] for one in logs.contents(bucket, prefix).values()] == ["b/"]
    event = {"run_id": "run-1", "started_at": STARTED, "settings": found["settings"]}
    verdict = answer_of(report.handler, event)
    # Its Spark job has not run.
    assert (verdict["spark_partitions"], verdict["oversized_partitions"]) == (1, 0)
    assert (verdict["failed_partitions"], verdict["totals"]["objects_in"]) == (1, 5)


class Later(SystemClock):
    """A clock that is ahead."""

    def __init__(self, days: float) -> None:
        self.days = days

    def now(self) -> float:
        return super().now() + self.days * 86_400


def test_the_store_of_a_warm_function_is_the_same(place: Place) -> None:
    one = Settings.from_input(place.input())
    assert runtime.store_for(one) is runtime.store_for(one)
    other = replace(one, limits=WorkerLimits(reads=5))
    assert runtime.store_for(other) is not runtime.store_for(one)


def test_a_discovery_that_cannot_end_in_time_says_what_to_set(logs: Place) -> None:
    event = {"input": logs.input(), "run_id": "run-2", "started_at": STARTED}
    # At the start of store, working time and discovery; then it is over.
    short = Context(milliseconds=(900_000,) * 4 + (1_000,))
    with pytest.raises(InvalidInput, match="depth: one call cannot list the prefixes of"):
        answer_of(discover.handler, event, short)


def test_a_batch_of_partitions_is_compacted_as_each_alone(
    logs: Place,
) -> None:
    found = logs.discover()
    of_run = {"run_id": "run-1", "settings": found["settings"]}
    batch = {"BatchInput": of_run, "Items": logs.items(found)}
    event = {"batch": batch, "attempt": 0}
    answer = answer_of(compact_partition.handler, event)
    assert (answer["status"], answer["Items"]) == ("done", [])
    done = [(one["path"], one["counts"]["objects_in"]) for one in answer["done"]]
    assert done == [("a/", 5), ("b/", 1)]
    verdict = answer_of(report.handler, {**of_run, "started_at": STARTED})
    assert (verdict["status"], verdict["totals"]["objects_in"]) == ("succeeded", 6)


def test_discovery_says_how_many_partitions_make_a_batch(place: Place) -> None:
    for number in range(17):
        place.put(f"logs/{number}/1.json", b"{}\n")
    assert place.discover()["batch_partitions"] == 1
    assert place.discover(max_concurrency=1)["batch_partitions"] == 8


def test_the_partitions_of_a_batch_read_the_identity_once(place: Place) -> None:
    for name in "ab":
        place.put(f"logs/{name}/1.json", b"{}\n")
    found = place.discover()
    of_run = {"run_id": "run-1", "settings": found["settings"]}
    batch = {"BatchInput": of_run, "Items": place.items(found)}
    answer = answer_of(compact_partition.handler, {"batch": batch, "attempt": 0})
    # The first one of all creates it.
    of_second = {**of_run, "run_id": "run-2"}
    again = {"batch": {**batch, "BatchInput": of_second}, "attempt": 0}
    for name in "ab":
        place.put(f"logs/{name}/2.json", b"{}\n")
    answer = answer_of(compact_partition.handler, again)
    first, second = (one["counts"]["requests"] for one in answer["done"])
    assert second["LIST"] == first["LIST"]
    assert second["GET"] == first["GET"] - 1
