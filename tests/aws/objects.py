"""Makes buckets, key, database and objects of a smoke test, and removes all of it by name."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tests.aws.world import Names

if TYPE_CHECKING:
    from tests.aws.world import World

Clients = Callable[[str], Any]

FIRST, REDRIVEN, SPARK = "2026-01-01", "2026-01-02", "2026-01-03"
VERSIONED, READ, WITHIN = "2026-01-04", "2026-01-05", "2026-01-06"
#: Objects of the last four.
FEW = 20
TAG = "compactor-smoke"
_DAYS = 7
# Step Functions stops an execution within seconds, and cancels its Spark job.
_LOOKS, _LOOK_SECONDS = 20, 3.0
_GONE = re.compile(r"NotFound|NoSuch|404|does not exist")
_NAME = re.compile(r"compactor[-_]smoke[-_]([0-9a-f]{8})(?![0-9a-f])")


def key_of(day: str, number: int) -> str:
    """Return the key of an object of a day."""
    return f"raw/{day.replace('-', '/')}/{number:04}.json"


def body(day: str, number: int) -> bytes:
    """Return its content: one record."""
    return f'{{"id": "{day}-{number}"}}\n'.encode()


def put_day(world: World, day: str, objects: int) -> None:
    """Put the objects of a day."""
    s3 = world.client("s3")

    def put(number: int) -> None:
        s3.put_object(Bucket=world.names.source, Key=key_of(day, number), Body=body(day, number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(objects)))


def make(clients: Clients, names: Names) -> str:
    """Make buckets, database and key; return the ARN of the key."""
    s3 = clients("s3")
    region = s3.meta.region_name
    where: dict[str, Any] = {}
    if region != "us-east-1":
        where = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    for bucket in names.buckets:
        s3.create_bucket(Bucket=bucket, **where)
        tags = {"TagSet": [{"Key": TAG, "Value": names.suffix}]}
        s3.put_bucket_tagging(Bucket=bucket, Tagging=tags)
    clients("glue").create_database(DatabaseInput={"Name": names.database})
    kms = clients("kms")
    made = kms.create_key(Description=names.base)["KeyMetadata"]
    kms.create_alias(AliasName=names.key_alias, TargetKeyId=made["KeyId"])
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": made["Arn"]}
    rule = {"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}
    for bucket in (names.source, names.lake):
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    return str(made["Arn"])


def left(clients: Clients) -> set[str]:
    """Return the suffixes of smoke tests of which anything is there."""
    found = [one["Name"] for one in clients("s3").list_buckets()["Buckets"]]
    found += [one["Name"] for one in _pages(clients("glue"), "get_databases", "DatabaseList")]
    found += [one["AliasName"][6:] for one in _pages(clients("kms"), "list_aliases", "Aliases")]
    found += [
        one["StackName"] for one in _pages(clients("cloudformation"), "describe_stacks", "Stacks")
    ]
    found += [*_pages(clients("dynamodb"), "list_tables", "TableNames")]
    return {match[1] for name in found if (match := _NAME.match(name))}


def remove(clients: Clients, names: Names, destroy: Callable[[str], None]) -> list[str]:
    """Remove everything of one smoke test; return what could not be removed, and why.

    Executions are stopped first, since they use all else. Buckets go only after the stacks, which
    cannot be deleted without them: a stack with events writes to its source's notifications.

    Args:
        clients: returns the client of a service.
        names: of the test.
        destroy: removes a stack, by name.
    """
    stacks = names.stacks.values()
    failures = _failures(
        [
            ("executions", lambda: _stop_executions(clients("stepfunctions"), names)),
            *((stack, lambda one=stack: destroy(one)) for stack in stacks),
        ]
    )
    if failures:
        return [*failures, "buckets, database and key: they stay while a stack may need them"]
    return _failures(
        [
            ("tables of the registry", lambda: _remove_registries(clients("dynamodb"), names)),
            *(
                (bucket, lambda one=bucket: _remove_bucket(clients("s3"), one, names))
                for bucket in names.buckets
            ),
            (names.database, lambda: _remove_database(clients("glue"), names.database)),
            (names.key_alias, lambda: _remove_key(clients("kms"), names.key_alias)),
        ]
    )


def _failures(steps: Iterable[tuple[str, Callable[[], None]]]) -> list[str]:
    failures = []
    for what, step in steps:
        try:
            step()
        except ClientError as error:
            if not _GONE.search(f"{error.response['Error'].get('Code')} {error}"):
                failures.append(f"{what}: {error}")
        except Exception as error:
            failures.append(f"{what}: {error}")
    return failures


def _pages(client: Any, operation: str, name: str) -> Iterator[Any]:
    for page in client.get_paginator(operation).paginate():
        yield from page.get(name, ())


def _stop_executions(client: Any, names: Names) -> None:
    """Stop the executions of the test's state machines, and wait for their ends.

    Raises:
        RuntimeError: one still runs; what it started may still write.
    """
    machines = [
        one["stateMachineArn"]
        for one in _pages(client, "list_state_machines", "stateMachines")
        if one["name"].startswith(f"{names.base}-")
    ]
    running: list[str] = []
    for _ in range(_LOOKS):
        running = [
            one["executionArn"]
            for page in map(partial(_running, client), machines)
            for one in page["executions"]
        ]
        if not running:
            return
        for execution in running:
            client.stop_execution(executionArn=execution, cause="the smoke test ended")
        time.sleep(_LOOK_SECONDS)
    raise RuntimeError(f"{len(running)} still run")


def _running(client: Any, machine: str) -> Any:
    return client.list_executions(stateMachineArn=machine, statusFilter="RUNNING")


def _remove_registries(client: Any, names: Names) -> None:
    for name in _pages(client, "list_tables", "TableNames"):
        if name.startswith(f"{names.base}-"):
            client.update_table(TableName=name, DeletionProtectionEnabled=False)
            client.get_waiter("table_exists").wait(TableName=name)
            client.delete_table(TableName=name)


def _remove_bucket(s3: Any, bucket: str, names: Names) -> None:
    """Remove a bucket that has the test's tag, with all that is in it.

    Raises:
        RuntimeError: it has no such tag, and is not empty.
        ClientError: S3 refused.
    """
    s3.head_bucket(Bucket=bucket)
    try:
        tags = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError:
        tags = []
    if {"Key": TAG, "Value": names.suffix} in tags:
        _empty(s3, bucket)
    elif {"Versions", "DeleteMarkers"} & s3.list_object_versions(Bucket=bucket).keys():
        raise RuntimeError("it is not empty, and has no tag of the test")
    s3.delete_bucket(Bucket=bucket)


def _empty(s3: Any, bucket: str) -> None:
    for one in _pages_of(s3, "list_multipart_uploads", "Uploads", bucket):
        s3.abort_multipart_upload(Bucket=bucket, Key=one["Key"], UploadId=one["UploadId"])
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        listed = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        objects = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in listed]
        if objects:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})


def _pages_of(s3: Any, operation: str, name: str, bucket: str) -> Iterator[Any]:
    for page in s3.get_paginator(operation).paginate(Bucket=bucket):
        yield from page.get(name, ())


def _remove_database(glue: Any, database: str) -> None:
    for page in glue.get_paginator("get_tables").paginate(DatabaseName=database):
        for table in page["TableList"]:
            glue.delete_table(DatabaseName=database, Name=table["Name"])
    glue.delete_database(Name=database)


def _remove_key(kms: Any, alias: str) -> None:
    key = kms.describe_key(KeyId=alias)["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=_DAYS)
    kms.delete_alias(AliasName=alias)
