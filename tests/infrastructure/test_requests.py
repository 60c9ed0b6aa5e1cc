"""Each request to S3 is known by the IAM actions that it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.infrastructure.cloud.recording import Request
from tests.infrastructure.cloud.requests import UnknownRequest, calls_of

_KEY = "arn:aws:kms:us-east-1:123456789012:key/1"


def _request(
    method: str,
    path: str,
    query: str = "",
    *,
    status: int = 200,
    body: str = "",
    headers: dict[str, str] | None = None,
    service: str = "s3",
) -> Request:
    return Request("worker", service, method, path, query, headers or {}, body, status)


def _named(request: Request, keys: dict[str, str] | None = None) -> list[str]:
    found = calls_of(request, keys or {})
    return [f"{call.action} {call.resource.removeprefix('arn:aws:s3:::')}" for call in found]


@pytest.mark.parametrize(
    ("request_", "needed"),
    [
        (_request("GET", "/b/k/a"), ["s3:GetObject b/k/a"]),
        (_request("HEAD", "/b/k/a"), ["s3:GetObject b/k/a"]),
        (_request("HEAD", "/b/k/a", status=404), ["s3:GetObject b/k/a", "s3:ListBucket b"]),
        (_request("PUT", "/b/k"), ["s3:PutObject b/k"]),
        (_request("POST", "/b/k", "uploads"), ["s3:PutObject b/k"]),
        (_request("PUT", "/b/k", "partNumber=1&uploadId=u"), ["s3:PutObject b/k"]),
        (_request("POST", "/b/k", "uploadId=u"), ["s3:PutObject b/k"]),
        (_request("DELETE", "/b/k", "uploadId=u"), ["s3:AbortMultipartUpload b/k"]),
        (_request("GET", "/b/k", "uploadId=u"), ["s3:ListMultipartUploadParts b/k"]),
        (_request("DELETE", "/b/k"), ["s3:DeleteObject b/k"]),
        (_request("GET", "/b", "uploads&prefix=k"), ["s3:ListBucketMultipartUploads b"]),
        (_request("GET", "/b", "list-type=2&prefix=k"), ["s3:ListBucket b"]),
        (
            _request("PUT", "/b/k", "partNumber=1", headers={"copy-source": "other/k%20y"}),
            ["s3:PutObject b/k", "s3:GetObject other/k y"],
        ),
        (
            _request(
                "POST",
                "/b",
                "delete",
                body="<Delete><Object><Key>a&amp;b</Key><ETag>e</ETag></Object>"
                "<Object><Key>c</Key></Object></Delete>",
            ),
            ["s3:DeleteObject b/a&b", "s3:GetObject b/a&b", "s3:DeleteObject b/c"],
        ),
    ],
)
def test_a_request_needs_these_actions(request_: Request, needed: list[str]) -> None:
    assert _named(request_) == needed


def test_a_listing_carries_its_prefix_and_a_missing_object_its_key() -> None:
    (listing,) = calls_of(_request("GET", "/b", "list-type=2&prefix=k%2F&delimiter=%2F"), {})
    missing = calls_of(_request("GET", "/b/k/a", status=404), {})[1]

    assert {("s3:prefix", "k/"), ("s3:delimiter", "/")} <= {*listing.context}
    assert ("s3:prefix", "k/a") in missing.context


def test_in_an_encrypted_bucket_the_key_is_used_as_well() -> None:
    assert _named(_request("GET", "/b/k"), {"b": _KEY})[1:] == [f"kms:Decrypt {_KEY}"]
    assert _named(_request("PUT", "/b/k"), {"b": _KEY})[1:] == [
        f"kms:GenerateDataKey {_KEY}",
        f"kms:Decrypt {_KEY}",
    ]
    copied = _request("PUT", "/b/k", "partNumber=1", headers={"copy-source": "/other/k"})
    assert _named(copied, {"other": _KEY})[2:] == [f"kms:Decrypt {_KEY}"]


_TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/registry"
_ITEM = {"TableName": "registry"}


def _of_a_service(service: str, operation: str, body: Mapping[str, Any]) -> Request:
    headers = {"target": f"Version.{operation}"}
    return _request("POST", "/", service=service, headers=headers, body=json.dumps(body))


@pytest.mark.parametrize(
    ("operation", "body", "needed"),
    [
        ("GetItem", _ITEM, [f"dynamodb:GetItem {_TABLE}"]),
        ("Query", _ITEM, [f"dynamodb:Query {_TABLE}"]),
        (
            "Query",
            {**_ITEM, "IndexName": "pending"},
            [f"dynamodb:Query {_TABLE}/index/pending"],
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Update": _ITEM}, {"ConditionCheck": _ITEM}]},
            [f"dynamodb:UpdateItem {_TABLE}", f"dynamodb:ConditionCheckItem {_TABLE}"],
        ),
    ],
)
def test_a_request_to_the_registry_needs_these_actions(
    operation: str, body: Mapping[str, Any], needed: list[str]
) -> None:
    assert _named(_of_a_service("dynamodb", operation, body)) == needed


def test_of_an_encrypted_table_the_key_is_used_as_well() -> None:
    asked = _of_a_service("dynamodb", "GetItem", _ITEM)

    assert _named(asked, {"registry": _KEY})[1:] == [f"kms:Decrypt {_KEY}"]


def test_a_change_of_a_table_needs_its_database_and_the_catalog_as_well() -> None:
    arn = "arn:aws:glue:us-east-1:123456789012"
    named = {"DatabaseName": "lake", "TableInput": {"Name": "events"}}

    assert _named(_of_a_service("glue", "UpdateTable", named)) == [
        f"glue:UpdateTable {arn}:{resource}"
        for resource in ("catalog", "database/lake", "table/lake/events")
    ]


@pytest.mark.parametrize(
    "operation", ["BatchGetPartition", "BatchCreatePartition", "BatchUpdatePartition"]
)
def test_partitions_need_their_table_its_database_and_the_catalog(operation: str) -> None:
    arn = "arn:aws:glue:us-east-1:123456789012"
    named = {"DatabaseName": "lake", "TableName": "logs"}

    assert _named(_of_a_service("glue", operation, named)) == [
        f"glue:{operation} {arn}:{resource}"
        for resource in ("catalog", "database/lake", "table/lake/logs")
    ]


def test_an_execution_is_started_by_its_machine_and_looked_at_by_its_own_name() -> None:
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:s3-compactor"
    execution = f"{machine.replace('stateMachine', 'execution')}:1"

    started = _of_a_service("states", "StartExecution", {"stateMachineArn": machine})
    looked_at = _of_a_service("states", "DescribeExecution", {"executionArn": execution})

    assert _named(started) == [f"states:StartExecution {machine}"]
    assert _named(looked_at) == [f"states:DescribeExecution {execution}"]


@pytest.mark.parametrize(
    "unknown",
    [
        _request("GET", "/b", "acl"),
        _request("GET", "/b/k", "acl"),
        _request("PUT", "/b/k", headers={"acl": "public-read"}),
        _request("GET", "/b/k", "versionId=1"),
        _request("POST", "/", service="dynamodb", headers={"target": "D.Scan"}, body="{}"),
        _request("POST", "/", service="states", headers={"target": "S.StopExecution"}, body="{}"),
        _request("POST", "/", service="glue", headers={"target": "G.GetTriggers"}, body="{}"),
        _request("POST", "/", service="sqs", headers={"target": "S.SendMessage"}, body="{}"),
    ],
)
def test_a_request_that_is_not_known_passes_for_nothing(unknown: Request) -> None:
    with pytest.raises(UnknownRequest):
        calls_of(unknown, {})
