"""S3's event messages, in the form of each delivery channel."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus


def _moment(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def notification(key: str, name: str = "ObjectCreated:Put", **given: Any) -> str:
    """Return the body of a notification of one object in a queue."""
    return json.dumps({"Records": [record(key, name, **given)]})


def record(key: str, name: str = "ObjectCreated:Put", **given: Any) -> dict[str, Any]:
    """Return one record of such a body."""
    one: dict[str, Any] = {
        "key": quote_plus(key, safe="/"),
        "sequencer": given.get("sequencer", "0055AED6"),
    }
    if name.removeprefix("s3:").startswith("ObjectCreated"):
        one |= {"size": given.get("size", 10), "eTag": given.get("etag", "e" * 32)}
    if given.get("version"):
        one["versionId"] = given["version"]
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-west-1",
        "eventTime": _moment(given.get("time", 1_700_000_000.0)),
        "eventName": name,
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": given.get("bucket", "source"), "arn": "arn:aws:s3:::source"},
            "object": one,
        },
    }


def bridged(key: str, kind: str = "Object Created", **given: Any) -> str:
    """Return the event of one object as EventBridge sends it."""
    one = {"key": key, "size": given.get("size", 10), "etag": given.get("etag", "e" * 32)}
    one["sequencer"] = given.get("sequencer", "0055AED6")
    if given.get("version"):
        one["version-id"] = given["version"]
    detail = {"version": "0", "bucket": {"name": given.get("bucket", "source")}, "object": one}
    if kind == "Object Deleted":
        del one["size"], one["etag"]
        detail["deletion-type"] = given.get("deletion", "Permanently Deleted")
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": kind,
            "source": "aws.s3",
            "account": "111122223333",
            "time": _moment(given.get("time", 1_700_000_000.0)),
            "region": "eu-west-1",
            "resources": ["arn:aws:s3:::source"],
            "detail": detail,
        }
    )


TEST_EVENT = json.dumps(
    {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": "2026-01-02T03:04:05.678Z",
        "Bucket": "source",
        "RequestId": "5582815E1AEA5ADF",
        "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
    }
)


def queued(messages: Iterable[str]) -> dict[str, Any]:
    """Return the SQS event that a function gets; message ids count from ``m0``."""
    return {
        "Records": [
            {"messageId": f"m{number}", "body": body, "eventSource": "aws:sqs"}
            for number, body in enumerate(messages)
        ]
    }
