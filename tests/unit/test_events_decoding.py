"""What S3 says of an object, out of a message: every way of delivery, and what is not from S3."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.registry.events import ForeignMessage, Happened, ObjectEvent, decode
from compactor.registry.items import ordered_sequencer
from tests.support.s3_events import TEST_EVENT, bridged, notification, record

KEYS = ["logs/a.json", "logs/a b+c%2B.json", "logs/день=1/ü.gz", "logs/=?&#.gz", "logs/\U0001f600"]


def only(body: str) -> ObjectEvent:
    (found,) = decode(body)
    return found


@pytest.mark.parametrize("key", KEYS)
def test_a_key_comes_out_as_it_is_by_every_way_of_delivery(key: str) -> None:
    assert {only(notification(key)).key, only(bridged(key)).key} == {key}


def test_an_event_has_all_that_a_listing_would() -> None:
    given_: dict[str, Any] = {
        "etag": "abc",
        "size": 2**41,
        "time": 1_700_000_000.25,
        "version": "v.1",
    }
    for body in (notification("logs/a", **given_), bridged("logs/a", **given_)):
        found = only(body)
        assert found.happened is Happened.CREATED
        assert (found.bucket, found.key, found.etag) == ("source", "logs/a", "abc")
        assert (found.size, found.time, found.version) == (2**41, 1_700_000_000.25, "v.1")
        assert found.sequencer == ordered_sequencer("0055AED6")


@pytest.mark.parametrize(
    ("name", "happened"),
    [
        ("ObjectCreated:Put", Happened.CREATED),
        ("s3:ObjectCreated:CompleteMultipartUpload", Happened.CREATED),
        ("ObjectCreated:Copy", Happened.CREATED),
        ("ObjectRemoved:Delete", Happened.REMOVED),
        ("ObjectRemoved:DeleteMarkerCreated", Happened.REMOVED),
        ("LifecycleExpiration:Delete", Happened.REMOVED),
        ("ObjectRestore:Completed", None),
        ("ObjectTagging:Put", None),
        ("LifecycleTransition", None),
        ("Replication:OperationMissedThreshold", None),
    ],
)
def test_a_notification_is_of_what_its_name_says(name: str, happened: Happened | None) -> None:
    found = decode(notification("logs/a", name))
    assert [one.happened for one in found] == ([happened] if happened else [])


def test_a_delete_marker_leaves_no_object_and_a_deleted_version_others() -> None:
    given_ = {"version": "v1"}
    assert only(notification("a", "ObjectRemoved:DeleteMarkerCreated", **given_)).version == ""
    assert only(notification("a", "ObjectRemoved:Delete", **given_)).version == "v1"
    marker = bridged("a", "Object Deleted", deletion="Delete Marker Created", **given_)
    assert only(marker).version == ""
    assert only(bridged("a", "Object Deleted", **given_)).version == "v1"
    assert decode(bridged("a", "Object Restore Completed")) == []
    assert decode(bridged("a", "Object Tags Added")) == []


def test_test_events_and_empty_notifications_are_of_no_object() -> None:
    assert decode(TEST_EVENT) == decode('{"Records": []}') == []


def test_several_records_of_one_message_are_several_events() -> None:
    body = json.dumps({"Records": [record("a"), record("b"), record("c", "ObjectTagging:Put")]})
    assert [one.key for one in decode(body)] == ["a", "b"]


def test_sequencers_are_in_the_order_of_s3() -> None:
    texts = ["", "0", "0055AED6", "0055aed7", "0055AED6DCD90281E5", "0055AED6DCD90281E6"]
    ordered = sorted(map(ordered_sequencer, texts))
    assert [texts.index(t) for t in ["", "0", "0055AED6"]] == [0, 1, 2]
    assert ordered.index(ordered_sequencer("0055AED6")) < ordered.index(
        ordered_sequencer("0055AED6DCD90281E5")
    )
    assert ordered[-1] == ordered_sequencer("0055aed7")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "hello",
        "[]",
        "null",
        "[" * 100_000,
        '{"Records": [{}]}',
        '{"Records": [1]}',
        json.dumps({"Records": [{**record("a"), "eventSource": "aws:sns"}]}),
        json.dumps({"Records": [{**record("a"), "eventTime": "yesterday"}]}),
        notification("a", size=-1),
        notification("a", size="10"),
        notification("a", sequencer="no hex"),
        notification("a", sequencer="0" * 65),
        notification("a", etag=""),
        notification(""),
        notification("a" * 1_025),
        notification("a").replace('"key": "a"', '"key": "%ff"'),
        notification("a").replace('"key": "a"', '"key": "\\ud800"'),
        bridged("a").replace('"object"', '"thing"'),
        bridged("a").replace('"detail": {', '"detail": {"bucket2": 1}, "other": {'),
        json.dumps({"source": "aws.ec2", "detail": {}}),
    ],
)
def test_a_message_that_is_not_from_s3_says_so(body: str) -> None:
    with pytest.raises(ForeignMessage) as caught:
        decode(body)
    assert len(str(caught.value)) < 300


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "Records",
                        "s3",
                        "object",
                        "bucket",
                        "key",
                        "eventName",
                        "eventSource",
                        "eventTime",
                        "detail",
                        "source",
                        "Type",
                        "Message",
                    ]
                ),
                x,
            )
        ),
        max_leaves=20,
    )
)
def test_no_document_is_more_than_a_foreign_message(document: object) -> None:
    try:
        decode(json.dumps(document))
    except ForeignMessage:
        return
