"""A destination with Object Lock and a default retention takes everything that a run writes."""

from __future__ import annotations

import boto3
import pytest

from compactor.clock import NoDeadline
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.s3.store import S3Store, make_client
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import ManualClock
from tests.support.moto_server import moto_server

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def test_a_run_writes_into_a_bucket_with_object_lock_and_a_default_retention() -> None:
    given = settings(settle_seconds=0)
    with moto_server() as url:
        client = boto3.client("s3", endpoint_url=url)
        client.create_bucket(Bucket=PARTITION.bucket)
        place = given.destination.bucket
        client.create_bucket(Bucket=place, ObjectLockEnabledForBucket=True)
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        lock = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        client.put_object_lock_configuration(Bucket=place, ObjectLockConfiguration=lock)
        for name in ("a", "b"):
            key = f"{PARTITION.prefix}{name}.json"
            body = f'{{"name": "{name}"}}\n'.encode()
            client.put_object(Bucket=PARTITION.bucket, Key=key, Body=body)
        store = S3Store(make_client(url, connections=4), threads=2)
        # The server puts sources down at the time of the test, whatever its year.
        clock = ManualClock(NOW + 100 * 365 * 86_400)
        run = PartitionRun(PARTITION, given, store, clock, NoDeadline(), "run-1")
        receipt = compact_partition(run, Counts())
        assert (receipt.status, receipt.counts.objects_in) == ("done", 2)
        listed = client.list_objects_v2(Bucket=place, Prefix=given.destination.prefix)
        (output,) = listed["Contents"]
        body = client.get_object(Bucket=place, Key=output["Key"])["Body"].read()
        assert body == b'{"name": "a"}\n{"name": "b"}\n'
