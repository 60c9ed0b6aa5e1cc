"""Partitions that share a child execution: real handlers, the local engine, an embedded S3."""

from __future__ import annotations

from compactor.s3.store import make_client
from tests.e2e.conftest import Workflow

PARTITIONS, EACH = 24, 3


def seed(workflow: Workflow, day: str) -> None:
    workflow.seed(
        {
            f"logs/{p}/{day}-{n}.json": b'{"id":"%d-%d"}\n' % (p, n)
            for p in range(PARTITIONS)
            for n in range(EACH)
        }
    )


def test_a_partition_of_a_batch_that_fails_is_the_only_one_that_is_not_compacted(
    workflow: Workflow,
) -> None:
    seed(workflow, "mon")
    # Two batches of twelve.
    first = workflow.run(depth=1, max_concurrency=1)
    assert first.status == "SUCCEEDED", first.cause
    assert first.output["totals"]["objects_in"] == PARTITIONS * EACH
    assert first.progress.partitions_done == PARTITIONS
    # Discovery, two batches, report.
    assert first.progress.invocations == 4

    client = make_client(workflow.s3.endpoint_url)
    entry = f"_compactor/compacted/partitions/1/commits/{1:020}.checkpoint.json.gz"
    client.put_object(Bucket=workflow.lake, Key=entry, Body=b"no checkpoint at all")
    seed(workflow, "tue")
    second = workflow.run(depth=1, max_concurrency=1)

    assert (second.status, second.error) == ("FAILED", "PartitionsFailed")
    assert second.cause is not None
    assert second.cause.startswith("1/: IntegrityError")
    assert "more" not in second.cause
    progress = second.progress
    assert (progress.partitions_done, progress.partitions_failed) == (PARTITIONS - 1, 1)
    assert progress.objects_done == (PARTITIONS - 1) * EACH
