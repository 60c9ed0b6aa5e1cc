"""The handler of standalone mode as Lambda calls it, against an S3 server."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import boto3
import pytest

from compactor import invocation
from compactor.catalogs.readers import open_readers
from compactor.errors import InvalidInput, PartitionsFailed
from compactor.invocation import kept_store
from compactor_handlers import standalone
from tests.support.moto_server import moto_server
from tests.unit.test_handlers import Context, Place, answer_of, emitted, metrics_of

_numbers = count()
# One of the times is asked for at the start, one before each partition, and some within.
PLENTY = 900_000


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def place(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Three partitions with two sources each."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    kept_store.cache_clear()
    number = next(_numbers)
    made = Place(
        boto3.client("s3", endpoint_url=endpoint), f"alone-{number}", f"alone-lake-{number}"
    )
    for bucket in (made.source, made.lake):
        made.s3.create_bucket(Bucket=bucket)
    for path in "abc":
        for key in range(2):
            made.put(f"logs/{path}/{key}.json", b'{"id": "%s%d"}\n' % (path.encode(), key))
    yield made
    kept_store.cache_clear()


@pytest.fixture
def log() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The records logged so far; the logger keeps the standard output it was made with."""
    (handler,) = invocation.logger.handlers
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    before = handler.setStream(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    handler.setStream(before)


def call(event: Any, *milliseconds: int, request_id: str = "call-1") -> dict[str, Any]:
    """What a caller gets; by default there is plenty of time."""
    context = Context(milliseconds=milliseconds or (PLENTY,), aws_request_id=request_id)
    return answer_of(standalone.handler, event, context)


def stored(place: Place, run_id: str, name: str) -> Any:
    key = f"_compactor/compacted/runs/{run_id}/{name}"
    return json.loads(place.s3.get_object(Bucket=place.lake, Key=key)["Body"].read())


def outputs(place: Place) -> list[str]:
    return sorted(key.split("/")[1] for key in place.contents(place.lake, "compacted/"))


def test_one_call_discovers_compacts_and_reports(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = call(place.input())
    assert (answer["status"], answer["run_id"]) == ("succeeded", "call-1")
    assert (answer["left"], answer["failed"], answer["refused"]) == ([], [], [])
    assert answer["totals"]["objects_in"] == 6
    assert outputs(place) == ["a", "b", "c"]
    report = stored(place, "call-1", "report.json")
    assert (report["status"], len(report["partitions"])) == ("succeeded", 3)
    assert report["started_at"] == answer["started_at"]
    told = [metrics_of(one) for one in emitted(capsys) if "ColdStart" not in one]
    (numbers,) = told
    assert (numbers["ObjectsIn"], numbers["ObjectsOut"]) == (6, 3)
    assert (numbers["WorkItems"], numbers["Partitions"]) == (3, 3)
    assert (numbers["RunsFailed"], numbers["PartitionsLeft"]) == (0, 0)


def test_what_query_engines_are_not_shown_is_counted(
    place: Place,
    endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", endpoint)
    open_readers.cache_clear()

    # Its database is not there.
    answer = call(place.input(reader_table="glue:lake.logs"))

    open_readers.cache_clear()
    assert answer["status"] == "succeeded"
    numbers = metrics_of(emitted(capsys)[-1])
    assert (numbers["SwitchedPartitions"], numbers["UnshownPartitions"]) == (0, 3)


def test_the_log_names_the_run_on_every_line(
    place: Place, log: Callable[[], list[dict[str, Any]]]
) -> None:
    call(place.input(), request_id="call-7")
    messages = [record["message"] for record in log()]
    assert messages == ["discovered", *["compacted"] * 3, "reported"]
    assert {record["run_id"] for record in log()} == {"call-7"}


def test_a_second_call_writes_no_output(place: Place) -> None:
    call(place.input())
    before = place.contents(place.lake, "compacted/")
    again = call(place.input(), request_id="call-2")
    assert again["totals"]["objects_in"] == 0
    assert place.contents(place.lake, "compacted/") == before


def test_without_time_for_a_partition_the_answer_is_more_and_names_what_is_left(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    # Time at the start, then only what the report needs and not quite a partition.
    answer = call(place.input(), PLENTY, 79_000)
    assert answer["status"] == "more"
    assert (answer["left"], answer["left_count"]) == (["a/", "b/", "c/"], 3)
    assert outputs(place) == []
    # A report would count them as lost.
    assert "report" not in answer
    with pytest.raises(place.s3.exceptions.NoSuchKey):
        stored(place, "call-1", "report.json")
    assert metrics_of(emitted(capsys)[-1])["PartitionsLeft"] == 3


# How often discovery looks at the clock: at its start, when it knows the partitions, and of each
# before it is asked for, before it is counted, and after its page.
DISCOVERY_OF_ONE, DISCOVERY_OF_THREE = 1 + 1 + 1, 1 + 1 + 3


def test_a_call_with_the_answer_continues_the_same_run_and_reports_all_of_it(
    place: Place,
) -> None:
    first = call(place.input(), *[PLENTY] * (4 + DISCOVERY_OF_THREE), 79_000)
    assert first["status"] == "more"
    assert 0 < first["left_count"] < 3
    done = outputs(place)
    assert done
    second = call(first, request_id="call-2")
    assert (second["status"], second["run_id"]) == ("succeeded", "call-1")
    assert second["started_at"] == first["started_at"]
    assert second["totals"]["objects_in"] == 6
    assert outputs(place) == ["a", "b", "c"]
    assert len(stored(place, "call-1", "report.json")["partitions"]) == 3


def test_a_call_with_the_input_again_does_what_is_left_in_a_run_of_its_own(place: Place) -> None:
    first = call(place.input(), *[PLENTY] * (4 + DISCOVERY_OF_THREE), 79_000)
    done = len(outputs(place))
    second = call(place.input(), request_id="call-2")
    assert (first["status"], second["status"]) == ("more", "succeeded")
    assert second["totals"]["objects_in"] == 6 - 2 * done


def test_a_partition_that_runs_out_of_time_keeps_what_it_has_and_is_left(
    place: Place,
) -> None:
    # Each is a group of its own.
    place.put("logs/d/0.json", b'{"id": 1}\n')
    place.put("logs/d/0.log", b'{"id": 2}\n')
    given = place.input(s3_source_uri=f"s3://{place.source}/logs/d/", depth=0)
    # start; the store; before the partition; to settle; before its first group; its second.
    first = call(given, *[PLENTY] * (5 + DISCOVERY_OF_ONE), 30_000)
    assert (first["status"], first["left"]) == ("more", [""])
    assert len(place.contents(place.lake, "compacted/")) == 1
    second = call(first)
    assert second["status"] == "succeeded"
    assert second["totals"]["objects_in"] == 2
    assert second["totals"]["calls"] == 2


def test_a_function_with_too_short_a_time_out_is_refused_before_anything_is_done(
    place: Place,
) -> None:
    with pytest.raises(InvalidInput, match=r"timeout: 100 is not accepted.*at least 160 seconds"):
        call(place.input(), 100_000)
    assert place.contents(place.lake) == {}


def test_a_failed_partition_stops_no_other_and_fails_the_call(place: Place) -> None:
    log = f"_compactor/compacted/partitions/b/commits/{1:020d}.json.gz"
    place.s3.put_object(Bucket=place.lake, Key=log, Body=b"no commit")
    with pytest.raises(PartitionsFailed, match=r"^b/: "):
        call(place.input())
    assert outputs(place) == ["a", "c"]
    assert stored(place, "call-1", "report.json")["status"] == "failed"


def test_lambdas_own_retry_does_only_what_failed(
    place: Place, log: Callable[[], list[dict[str, Any]]]
) -> None:
    broken = f"_compactor/compacted/partitions/b/commits/{1:020d}.json.gz"
    place.s3.put_object(Bucket=place.lake, Key=broken, Body=b"no commit")
    with pytest.raises(PartitionsFailed):
        call(place.input())
    place.s3.delete_object(Bucket=place.lake, Key=broken)
    before = len(log())
    # The same request id.
    answer = call(place.input())
    assert answer["status"] == "succeeded"
    assert answer["totals"]["objects_in"] == 6
    again = [record["path"] for record in log()[before:] if record["message"] == "compacted"]
    assert again == ["b/"]


def test_an_oversized_partition_is_refused_with_its_size_and_a_remedy(
    place: Place,
    log: Callable[[], list[dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    place.put("logs/b/2.json", b'{"id": "b2"}\n')
    answer = call(place.input(lambda_max_bytes=28))
    assert answer["status"] == "succeeded"
    assert outputs(place) == ["a", "c"]
    (line,) = answer["refused"]
    assert line.startswith(
        "refused: b/ has more than one worker takes in a run, of which 0 objects"
    )
    assert "set engine to worker" in line
    assert [record["message"] for record in log() if record["level"] == "ERROR"] == [line]
    assert metrics_of(emitted(capsys)[-1])["OversizedPartitions"] == 1
    assert stored(place, "call-1", "report.json")["oversized"] == ["b/"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"spark_engine": "emr_serverless"}, "spark_engine"),
        ({"spark_engine": "j-2AXXXXXXGAPLF"}, "spark_engine"),
        ({"table": "glue:lake.events"}, "table"),
        ({"engine": "spark"}, "engine"),
        ({"colour": "red"}, "colour"),
        ({"s3_source_uri": "s3://no-such-bucket/logs/"}, "s3_source_uri"),
    ],
)
def test_input_that_one_function_cannot_serve_is_refused(
    place: Place, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(place.input(**given))
    assert caught.value.field == field
    assert place.contents(place.lake) == {}


@pytest.mark.parametrize("event", [[], "text", None, {}, {"status": "more"}])
def test_an_event_that_is_no_input_is_refused(place: Place, event: Any) -> None:
    with pytest.raises(InvalidInput):
        call(event)
