"""Decodes what S3 reports about objects from the body of a message.

Supported are S3's own notifications, and the events that S3 sends to EventBridge. Their formats are
in "Event message structure" in the Amazon S3 User Guide, and in "Amazon S3 events" of EventBridge.
Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import unquote_plus

from compactor.registry.items import ordered_sequencer

_LONGEST_KEY_BYTES = 1_024
_SEQUENCER = re.compile(r"[0-9A-Fa-f]{0,64}")
_SHOWN = 120


class ForeignMessage(ValueError):
    """A message that is not from S3; its text says what it is instead."""


class Happened(StrEnum):
    """What happened to an object."""

    CREATED = "created"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One event of one object.

    Attributes:
        key: decoded.
        etag: without quotes; empty for a removed object.
        time: of the event, UNIX seconds.
        sequencer: in the form of :func:`compactor.registry.items.ordered_sequencer`; may be empty.
        version: empty in an unversioned bucket. For a removal, the version that was deleted; empty
            if the key no longer has a current object.
    """

    happened: Happened
    bucket: str
    key: str
    etag: str
    size: int
    time: float
    sequencer: str
    version: str


def decode(body: str) -> list[ObjectEvent]:
    """Return the object events in a message; none for a test event.

    Raises:
        ForeignMessage: it is not from S3.
    """
    document = _document(body)
    if document.get("Event") == "s3:TestEvent":
        return []
    try:
        if isinstance(document.get("Records"), list):
            return [e for one in document["Records"] if (e := _of_notification(one)) is not None]
        if document.get("source") == "aws.s3" and isinstance(document.get("detail"), Mapping):
            found = _of_bridge(document)
            return [found] if found else []
    except (KeyError, TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise ForeignMessage(f"an event of S3 without what is needed: {error!r}") from None
    raise ForeignMessage(f"no event of S3: {_shown(body)}")


def _document(body: str) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ForeignMessage(f"no JSON: {_shown(body)}") from None
    if not isinstance(found, Mapping):
        raise ForeignMessage(f"no JSON object: {_shown(body)}")
    return found


def _of_notification(record: Mapping[str, Any]) -> ObjectEvent | None:
    if not str(record["eventSource"]).endswith(":s3"):
        raise ForeignMessage(f"an event of {record['eventSource']}")
    name = str(record["eventName"]).removeprefix("s3:")
    happened = _happened(name)
    if happened is None:
        return None
    s3 = record["s3"]
    one = s3["object"]
    # Keys are encoded like HTML form data: "+" is a space, and "%2B" a plus sign.
    key = unquote_plus(one["key"], errors="strict")
    final = name.endswith(":Delete")
    return _event(happened, s3["bucket"]["name"], key, one, record["eventTime"], final=final)


def _happened(name: str) -> Happened | None:
    """Return what a notification's name means; None if no object appears or disappears."""
    kind = name.partition(":")[0]
    if kind == "ObjectCreated":
        return Happened.CREATED
    return Happened.REMOVED if kind in {"ObjectRemoved", "LifecycleExpiration"} else None


_BRIDGED: Mapping[str, Happened] = {
    "Object Created": Happened.CREATED,
    "Object Deleted": Happened.REMOVED,
}


def _of_bridge(document: Mapping[str, Any]) -> ObjectEvent | None:
    happened = _BRIDGED.get(document["detail-type"])
    if happened is None:
        return None
    detail = document["detail"]
    final = detail.get("deletion-type") == "Permanently Deleted"
    one = {
        "sequencer": detail["object"].get("sequencer", ""),
        "versionId": detail["object"].get("version-id", ""),
        "eTag": detail["object"].get("etag", ""),
        "size": detail["object"].get("size", 0),
    }
    # Unlike in notifications, keys are not encoded.
    key = detail["object"]["key"]
    return _event(happened, detail["bucket"]["name"], key, one, document["time"], final=final)


def _event(
    happened: Happened,
    bucket: object,
    key: object,
    one: Mapping[str, Any],
    time: str,
    *,
    final: bool,
) -> ObjectEvent:
    size, etag = one.get("size", 0), str(one.get("eTag") or "").strip('"')
    sequencer = str(one.get("sequencer") or "")
    if type(size) is not int or size < 0 or not isinstance(bucket, str) or not bucket:
        raise ForeignMessage(f"an event of S3 with a size {size!r} and a bucket {bucket!r}")
    if not _SEQUENCER.fullmatch(sequencer):
        raise ForeignMessage(f"an event of S3 with a sequencer {_shown(sequencer)}")
    if not isinstance(key, str) or not 0 < len(key.encode()) <= _LONGEST_KEY_BYTES:
        raise ForeignMessage(f"an event of S3 with a key {_shown(key)}")
    if happened is not Happened.REMOVED and not etag:
        raise ForeignMessage(f"an event of S3 without the ETag of {_shown(key)}")
    version = str(one.get("versionId") or "")
    if happened is Happened.REMOVED and not final:
        # A delete marker is a version of its own: the key has no current object.
        version = ""
    return ObjectEvent(
        happened, bucket, key, etag, size, _seconds(time), ordered_sequencer(sequencer), version
    )


def _seconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ForeignMessage(f"an event of S3 at {_shown(text)}") from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds) or seconds < 0:
        raise ForeignMessage(f"an event of S3 at {_shown(text)}")
    return seconds


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def bodies(event: object) -> Iterator[tuple[str, str]]:
    """Yield id and body of each message in an SQS event that invokes a function.

    Raises:
        ValueError: it is not such an event.
    """
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        raise ValueError("no event of SQS")
    for one in records:
        yield str(one["messageId"]), str(one["body"])
