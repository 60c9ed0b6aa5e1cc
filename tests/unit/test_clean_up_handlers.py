"""The handlers of clean-up as Lambda calls them, against an S3 server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import boto3
import pytest

from compactor.errors import IntegrityError, InvalidInput, PartitionsFailed
from compactor.invocation import kept_store
from compactor.orchestration import run as whole
from compactor.s3 import objects
from compactor_handlers import clean_up, plan_clean_up, standalone
from tests.support.moto_server import moto_server
from tests.unit.test_handlers import Context, Later, Place, answer_of, emitted, metrics_of

_numbers = count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def place(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Two partitions: one with two sources of two kinds, one with a single source."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    kept_store.cache_clear()
    number = next(_numbers)
    client = boto3.client("s3", endpoint_url=endpoint)
    made = Place(client, f"cleaned-{number}", f"cleaned-lake-{number}")
    for bucket in (made.source, made.lake):
        client.create_bucket(Bucket=bucket)
    made.put("logs/a/1.json", b'{"id": 1}\n')
    made.put("logs/a/2.log", b"2026-01-02 03:04:05 line\n")
    made.put("logs/b/3.json", b'{"id": 3}\n')
    yield made
    kept_store.cache_clear()


@pytest.fixture
def days_later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves our clock and the store's: neither alone lets anything be deleted."""

    def move(days: float) -> None:
        for module in (plan_clean_up, clean_up, standalone):
            monkeypatch.setattr(module, "SystemClock", lambda: Later(days))
        monkeypatch.setattr(objects, "_date_of", lambda answer: Later(days).now())

    return move


def compacted(place: Place, **given: Any) -> dict[str, Any]:
    """What comes before clean-up; returns the event that planning gets."""
    found = place.discover(**{"delete_after": "7d", **given})
    for item in place.items(found):
        place.compact(found, item)
    return {"run_id": "run-1", "settings": found["settings"]}


def planned(place: Place, event: dict[str, Any]) -> list[dict[str, Any]]:
    """The events that the Map gives to its children."""
    answer = answer_of(plan_clean_up.handler, event)
    where = answer["clean_up"]
    body = place.s3.get_object(Bucket=where["bucket"], Key=where["key"])["Body"].read()
    items = json.loads(body)
    assert where["partitions"] == len(items)
    assert (answer["run_id"], answer["settings"]) == (event["run_id"], event["settings"])
    return [{**event, "partition": item} for item in items]


def receipts(place: Place, run_id: str = "run-1") -> dict[str, dict[str, Any]]:
    """By the path of the partition."""
    prefix = f"_compactor/compacted/runs/{run_id}/clean-ups/"
    found = map(json.loads, place.contents(place.lake, prefix).values())
    return {receipt["path"]: receipt for receipt in found}


@pytest.mark.parametrize(
    ("after", "days", "partitions"), [("7d", 6.9, 0), ("7d", 7.1, 2), (None, 99, 0)]
)
def test_only_partitions_past_retention_are_planned_and_only_on_request(
    place: Place,
    days_later: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
    after: str | None,
    days: float,
    partitions: int,
) -> None:
    event = compacted(place, delete_after=after)
    days_later(days)
    capsys.readouterr()
    events = planned(place, event)
    assert [one["partition"]["path"] for one in events] == ["a/", "b/"][:partitions]
    assert metrics_of(emitted(capsys)[0]) == {"DuePartitions": partitions}
    for one in events:
        assert answer_of(clean_up.handler, one)["status"] == "done"
    assert len(place.contents(place.source)) == (0 if partitions else 3)


def test_clean_up_answers_with_its_input_a_status_and_counts(
    place: Place, days_later: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    event = compacted(place)
    days_later(8)
    one, _ = planned(place, event)
    assert one["partition"] == {"path": "a/", "entries": 2}
    capsys.readouterr()
    answer = answer_of(clean_up.handler, one)
    assert {name: answer[name] for name in one} == one
    counts = answer["counts"]
    assert (counts["commits"], counts["deleted"], counts["deleted_bytes"]) == (2, 2, 35)
    assert (counts["refused"], counts["markers"], counts["uploads_aborted"]) == (0, 0, 0)
    # Two deletes; HEAD of two outputs, of an entry for the store's clock, of a table log, and of
    # the marker that query engines read the destination.
    assert (counts["requests"]["DELETE"], counts["requests"]["HEAD"]) == (2, 5)
    told = metrics_of(emitted(capsys)[0])
    assert told == {"DeletedSources": 2, "RefusedSources": 0, "UnsafeCommits": 0}
    receipt = receipts(place)["a/"]
    assert receipt["counts"] == counts
    assert (receipt["run_id"], receipt["status"], receipt["unsafe"]) == ("run-1", "done", [])
    assert list(place.contents(place.source)) == ["logs/b/3.json"]


def test_without_time_the_answer_is_more_and_the_next_call_goes_on(
    place: Place, days_later: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    event = compacted(place)
    days_later(8)
    one, _ = planned(place, event)
    first = answer_of(clean_up.handler, one, Context(milliseconds=(1_000,)))
    assert (first["status"], first["counts"]["commits"]) == ("more", 1)
    capsys.readouterr()
    second = answer_of(clean_up.handler, first)
    assert (second["status"], second["counts"]["commits"]) == ("done", 2)
    assert second["counts"]["calls"] == 2
    assert metrics_of(emitted(capsys)[0])["DeletedSources"] == 1
    assert receipts(place)["a/"]["counts"]["deleted"] == 2


def test_clean_up_stops_before_ten_minutes_though_lambda_would_give_five_more(
    place: Place, days_later: Callable[[float], None]
) -> None:
    event = compacted(place)
    days_later(8)
    one, _ = planned(place, event)
    # At the start of store and working time; then 550 s have gone.
    context = Context(milliseconds=(900_000, 900_000, 350_000))
    first = answer_of(clean_up.handler, one, context)
    assert (first["status"], first["counts"]["commits"]) == ("more", 1)


def test_an_output_that_is_not_there_keeps_its_sources_and_is_reported(
    place: Place, days_later: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    event = compacted(place)
    for key in place.contents(place.lake, "compacted/a/"):
        if key.endswith(".json"):
            place.s3.delete_object(Bucket=place.lake, Key=key)
    days_later(8)
    one, _ = planned(place, event)
    capsys.readouterr()
    answer = answer_of(clean_up.handler, one)
    assert (answer["status"], answer["counts"]["deleted"]) == ("done", 1)
    assert metrics_of(emitted(capsys)[0])["UnsafeCommits"] == 1
    (line,) = receipts(place)["a/"]["unsafe"]
    assert "is gone: bring" in line
    assert "; its sources stay" in line
    assert "logs/a/1.json" in place.contents(place.source)


def test_a_damaged_log_fails_the_call_and_the_receipt_says_why(
    place: Place, days_later: Callable[[float], None]
) -> None:
    event = compacted(place)
    key = f"_compactor/compacted/partitions/a/commits/{1:020}.json.gz"
    place.s3.put_object(Bucket=place.lake, Key=key, Body=b"damage")
    days_later(8)
    one, other = planned(place, event)
    with pytest.raises(IntegrityError, match="is damaged"):
        answer_of(clean_up.handler, one)
    answer_of(clean_up.handler, other)
    assert {path: one["status"] for path, one in receipts(place).items()} == {
        "a/": "failed",
        "b/": "done",
    }
    assert receipts(place)["a/"]["error"] == "IntegrityError"
    assert sorted(place.contents(place.source)) == ["logs/a/1.json", "logs/a/2.log"]


def test_a_partition_that_is_invalid_is_refused(place: Place) -> None:
    event = {**compacted(place), "partition": {"path": "a/"}}
    with pytest.raises(InvalidInput, match="partition"):
        answer_of(clean_up.handler, event)


def test_in_a_versioned_bucket_no_version_is_deleted_and_a_warning_says_so(
    place: Place, days_later: Callable[[float], None]
) -> None:
    place.s3.put_bucket_versioning(
        Bucket=place.source, VersioningConfiguration={"Status": "Enabled"}
    )
    place.put("logs/a/1.json", b'{"id": 1}\n')
    event = compacted(place)
    days_later(8)
    one, _ = planned(place, event)
    counts = answer_of(clean_up.handler, one)["counts"]
    assert (counts["deleted"], counts["markers"]) == (2, 2)
    (line,) = receipts(place)["a/"]["warnings"]
    assert "noncurrent versions" in line
    listed = place.s3.list_object_versions(Bucket=place.source, Prefix="logs/a/")
    assert len(listed["DeleteMarkers"]) == 2
    assert {one["Key"] for one in listed["Versions"]} == {"logs/a/1.json", "logs/a/2.log"}
    assert planned(place, event) == [{**event, "partition": {"path": "b/", "entries": 1}}]


@pytest.mark.parametrize("after", ["7d", None])
def test_standalone_cleans_up_partitions_that_it_did_not_list(
    place: Place,
    days_later: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
    after: str | None,
) -> None:
    compacted(place)
    place.s3.delete_object(Bucket=place.source, Key="logs/b/3.json")
    days_later(8)
    capsys.readouterr()
    answer = answer_of(standalone.handler, place.input(delete_after=after))
    assert answer["status"] == "succeeded"
    left = sorted(place.contents(place.source))
    assert left == ([] if after else ["logs/a/1.json", "logs/a/2.log"])
    found = receipts(place, Context().aws_request_id)
    assert sorted(found) == (["a/", "b/"] if after else [])
    told = metrics_of(emitted(capsys)[-1])
    # Somebody else deleted b/3.json: a clean-up counts what it deleted itself.
    assert told.get("DeletedSources") == (2 if after else None)


def test_standalone_without_time_leaves_clean_up_to_the_next_call(
    place: Place, days_later: Callable[[float], None]
) -> None:
    given = place.input(delete_after="7d")
    compacted(place)
    days_later(8)
    # Of times, discovery takes some for each partition; then each of them one, and some within.
    context = Context(milliseconds=(900_000,) * 9 + (79_000,))
    answer = answer_of(standalone.handler, given, context)
    assert (answer["status"], answer["left"]) == ("more", ["a/", "b/"])
    assert len(place.contents(place.source)) == 3
    assert answer_of(standalone.handler, answer)["status"] == "succeeded"
    assert place.contents(place.source) == {}


def test_a_clean_up_that_fails_fails_a_standalone_run_after_its_report(
    place: Place, days_later: Callable[[float], None]
) -> None:
    compacted(place)
    key = f"_compactor/compacted/partitions/a/commits/{1:020}.json.gz"
    place.s3.put_object(Bucket=place.lake, Key=key, Body=b"damage")
    for name in ("a/1.json", "a/2.log"):
        place.s3.delete_object(Bucket=place.source, Key=f"logs/{name}")
    days_later(8)
    with pytest.raises(PartitionsFailed, match="is damaged"):
        answer_of(standalone.handler, place.input(delete_after="7d"))
    assert sorted(place.contents(place.source)) == []


def test_a_clean_up_that_cannot_be_planned_is_in_the_report(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInput("s3_state_uri", "s3://lake/", "a bucket that may be listed")

    monkeypatch.setattr(whole, "find_due", refuse)
    with pytest.raises(PartitionsFailed, match=r"clean-up: .*a bucket that may be listed"):
        answer_of(standalone.handler, place.input(delete_after="30d"))
    assert len(place.contents(place.lake, "compacted/")) == 3
    assert len(place.contents(place.source)) == 3
