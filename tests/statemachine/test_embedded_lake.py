"""The embedded S3 with a lake's services: events in order, and tables that one writer changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import boto3
import pytest

from compactor_cli.machine.processes import python_environment
from compactor_local.embedded import EmbeddedS3, embedded_s3

_KEY = "raw/a b+ü=1.json"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with embedded_s3(lake=True) as running:
        running.create_bucket("lake")
        yield running


def _client(service: str, server: EmbeddedS3) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload] # any of several
        endpoint_url=server.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="embedded",
        aws_secret_access_key="embedded",
    )


def test_each_write_and_delete_is_notified_once_with_a_larger_sequencer(server: EmbeddedS3) -> None:
    sqs, s3 = _client("sqs", server), _client("s3", server)
    url = sqs.create_queue(QueueName="events")["QueueUrl"]
    names = ["QueueArn"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]["QueueArn"]
    told = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
    s3.put_bucket_notification_configuration(
        Bucket="lake", NotificationConfiguration={"QueueConfigurations": [told]}
    )
    etag = s3.put_object(Bucket="lake", Key=_KEY, Body=b"{}")["ETag"].strip('"')
    s3.put_object(Bucket="lake", Key=_KEY, Body=b"[]")
    s3.delete_object(Bucket="lake", Key=_KEY)
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    bodies = [json.loads(one["Body"]) for one in messages]
    records = [record for body in bodies for record in body.get("Records", [])]
    events = sorted(records, key=lambda one: one["s3"]["object"]["sequencer"])
    assert [one["eventName"] for one in events] == [
        "ObjectCreated:Put",
        "ObjectCreated:Put",
        "ObjectRemoved:Delete",
    ]
    objects = [one["s3"]["object"] for one in events]
    assert {unquote_plus(one["key"]) for one in objects} == {_KEY}
    assert (objects[0]["eTag"], objects[0]["size"]) == (etag, 2)
    assert len({len(one["sequencer"]) for one in objects}) == 1
    assert "eTag" not in objects[2]


def test_of_two_writers_of_a_glue_table_that_read_one_version_the_second_is_refused(
    server: EmbeddedS3,
) -> None:
    glue = _client("glue", server)
    glue.create_database(DatabaseInput={"Name": "db"})
    glue.create_table(DatabaseName="db", TableInput={"Name": "t"})

    def update(owner: str, **more: str) -> None:
        glue.update_table(DatabaseName="db", TableInput={"Name": "t", "Owner": owner}, **more)

    version = glue.get_table(DatabaseName="db", Name="t")["Table"]["VersionId"]
    update("first", VersionId=version)
    with pytest.raises(glue.exceptions.ConcurrentModificationException):
        update("second", VersionId=version)
    table = glue.get_table(DatabaseName="db", Name="t")["Table"]
    assert (table["Owner"], table["VersionId"]) == ("first", str(int(version) + 1))
    update("second", VersionId=table["VersionId"])
    update("third")
    assert glue.get_table(DatabaseName="db", Name="t")["Table"]["Owner"] == "third"


def _number(dynamodb: Any, name: str) -> int:
    item = dynamodb.get_item(TableName="numbers", Key={"pk": {"S": name}}).get("Item")
    return int(item["n"]["N"]) if item else 0


def test_a_transaction_that_is_refused_changes_nothing_and_takes_back_nothing_of_others(
    server: EmbeddedS3,
) -> None:
    dynamodb = _client("dynamodb", server)
    dynamodb.create_table(
        TableName="numbers",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )

    def add(name: str) -> dict[str, Any]:
        one = {":one": {"N": "1"}}
        return {
            "TableName": "numbers",
            "Key": {"pk": {"S": name}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": one,
        }

    def refused() -> None:
        for _ in range(20):
            with pytest.raises(dynamodb.exceptions.TransactionCanceledException):
                dynamodb.transact_write_items(
                    TransactItems=[
                        {"Update": add("mine")},
                        {"Update": {**add("none"), "ConditionExpression": "attribute_exists(pk)"}},
                    ]
                )

    dynamodb.update_item(**add("mine"))
    others = threading.Thread(target=refused)
    others.start()
    for _ in range(50):
        dynamodb.update_item(**add("theirs"))
    others.join()
    assert [_number(dynamodb, name) for name in ("mine", "theirs", "none")] == [1, 50, 0]
    dynamodb.transact_write_items(
        TransactItems=[{"Update": add("mine")}, {"Update": add("theirs")}]
    )
    assert [_number(dynamodb, name) for name in ("mine", "theirs")] == [2, 51]


# In a process of its own, as the server is: what is replaced in moto stays replaced. Prints how
# many items each query looked at.
_LOOKED_AT = """
import json, boto3, moto
from compactor_local import aws_patches
from moto.dynamodb.models.table import Table
from tests.statemachine.test_embedded_lake import _queried, _with_items

aws_patches.install()
usual, looked = Table.all_items, []

def all_items(table):
    found = usual(table)
    looked.append(len(found))
    return found

Table.all_items = all_items
with moto.mock_aws():
    dynamodb = boto3.client("dynamodb")
    _with_items(dynamodb, {"few": 3, "many": 200})
    for given in ({}, {"IndexName": "pending"}):
        _queried(dynamodb, "few", given)
print(json.dumps(looked))
"""


def test_a_query_looks_at_what_its_partition_key_has_and_not_at_the_table(
    repo_root: Path,
) -> None:
    environment = python_environment(os.environ, str(repo_root))
    command = [sys.executable, "-c", _LOOKED_AT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [3, 3]


def test_a_query_has_the_items_of_its_partition_key_in_order(server: EmbeddedS3) -> None:
    dynamodb = _client("dynamodb", server)
    _with_items(dynamodb, {"few": 3, "many": 300})
    assert _queried(dynamodb, "few", {}) == ["0000", "0001", "0002"]
    assert _queried(dynamodb, "few", {"IndexName": "pending"}) == ["0002", "0001", "0000"]
    assert _queried(dynamodb, "none", {}) == []
    assert len(_queried(dynamodb, "many", {})) == 300


def _with_items(dynamodb: Any, counts: Mapping[str, int]) -> None:
    """A table with so many items of each partition key, the last ones first in its index."""
    names = ("pk", "sk", "pending")
    keys = [[("pk", "HASH"), (name, "RANGE")] for name in names[1:]]
    of_table, of_index = [
        [{"AttributeName": name, "KeyType": kind} for name, kind in pairs] for pairs in keys
    ]
    dynamodb.create_table(
        TableName="queried",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in names],
        KeySchema=of_table,
        LocalSecondaryIndexes=[
            {"IndexName": "pending", "KeySchema": of_index, "Projection": {"ProjectionType": "ALL"}}
        ],
    )

    for key, count in counts.items():
        items = [
            {"pk": {"S": key}, "sk": {"S": f"{n:04}"}, "pending": {"S": f"{9_999 - n}"}}
            for n in range(count)
        ]
        requests = [{"PutRequest": {"Item": item}} for item in items]
        for start in range(0, len(requests), 25):
            dynamodb.batch_write_item(RequestItems={"queried": requests[start : start + 25]})


def _queried(dynamodb: Any, key: str, index: Mapping[str, str]) -> list[str]:
    found = dynamodb.query(
        TableName="queried",
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": key}},
        **index,
    )
    return [one["sk"]["S"] for one in found["Items"]]
