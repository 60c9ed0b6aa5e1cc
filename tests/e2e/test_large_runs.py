"""The whole workflow on the local engine, at a size where shortcuts stop working."""

from __future__ import annotations

import boto3
import pytest

MIB = 1024 * 1024
MEMORY_LIMIT_BYTES = 512 * MIB


def client_of(workflow):
    return boto3.client(
        "s3",
        endpoint_url=workflow.s3.endpoint_url,
        aws_access_key_id="embedded",
        aws_secret_access_key="embedded",
    )


def bodies(workflow, prefix: str) -> dict[str, bytes]:
    client = client_of(workflow)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=workflow.lake, Prefix=prefix)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
    return {key: client.get_object(Bucket=workflow.lake, Key=key)["Body"].read() for key in keys}


@pytest.mark.slow
def test_hundreds_of_partitions_become_as_many_outputs(workflow):
    # Their sources are more than a listing tells at once. A thousand children of a Map are in
    # tests/statemachine/test_engine.py; here each is a real worker's, which takes a tenth of a
    # second of it.
    partitions, each = 300, 4
    workflow.seed(
        {
            f"logs/tenant-{p:04}/{n}.json": f'{{"record": "{p}-{n}"}}\n'.encode()
            for p in range(partitions)
            for n in range(each)
        }
    )
    result = workflow.run(depth=1)
    assert result.status == "SUCCEEDED", result.cause
    assert result.output["totals"]["objects_in"] == partitions * each
    assert result.output["totals"]["objects_out"] == partitions
    assert result.worker_peak_bytes < MEMORY_LIMIT_BYTES
    outputs = bodies(workflow, "compacted/tenant-0")
    assert len(outputs) == partitions
    for key, body in outputs.items():
        p = key.split("/")[1].removeprefix("tenant-")
        assert body == b"".join(b'{"record": "%d-%d"}\n' % (int(p), n) for n in range(each))


STAMP = b"2026-01-02T03:04:05Z "


@pytest.mark.slow
def test_twenty_thousand_objects_of_one_partition_fit_a_small_worker(workflow):
    count = 20_000
    workflow.seed({f"logs/{n:05}.log": STAMP + b"record-%05d " % n * 30 for n in range(count)})
    result = workflow.run()
    assert result.status == "SUCCEEDED", result.cause
    assert result.output["totals"]["objects_in"] == count
    assert result.output["totals"]["records"] == count
    assert result.worker_peak_bytes < MEMORY_LIMIT_BYTES
    (body,) = bodies(workflow, "compacted/").values()
    lines = body.splitlines()
    names = [line.removeprefix(STAMP)[:12] for line in lines]
    assert names == [b"record-%05d" % n for n in range(count)]
    again = workflow.run()
    assert again.output["totals"]["objects_in"] == 0
