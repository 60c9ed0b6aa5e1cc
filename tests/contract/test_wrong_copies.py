"""A server that keeps a wrong CRC32 of copied parts, where the probe has not found it out."""

from __future__ import annotations

import pytest
from botocore.exceptions import FlexibleChecksumError

from compactor.clock import NoDeadline, SystemClock
from compactor.conditions import StoreTraits
from compactor.errors import WrongCopies
from compactor.limits import USUAL
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.outputs.confirm import confirm
from compactor.outputs.verify import check_commit
from compactor.runs.given import PartitionRun
from compactor.runs.partition import record_partition
from compactor.runs.receipts import Counts
from compactor.settings.settings import Settings
from tests.contract.benches import OnServer

LINE = b'{"record": "%012d", "filler": "%b"}\n'
SMALL = LINE % (0, b"")
LARGE = b"".join(LINE % (n, b"x" * 10_000) for n in range(1, USUAL.copy_slice_bytes // 10_000 + 2))


def the_run(bench: OnServer) -> PartitionRun:
    settings = Settings.from_input(
        {
            "s3_source_uri": f"s3://{bench.bucket}/logs/",
            "s3_destination_uri": f"s3://{bench.bucket}/compacted/",
            "settle_seconds": 0,
            "open_partition_seconds": 0,
        }
    )
    traits = StoreTraits(knows_copied_crc32=False, deletes_many=False, deletes_one=False)
    store = bench.store.with_traits(traits)
    partition = Partition(bench.bucket, "logs/", "")
    return PartitionRun(partition, settings, store, SystemClock(), NoDeadline(), "run-1")


@pytest.mark.parametrize("bench", ["versitygw-boto3"], indirect=True)
def test_an_output_that_readers_refuse_is_built_again_and_they_read_it(
    bench: OnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.seed("logs/0.json", SMALL)
    bench.seed("logs/1.json", LARGE)
    refused: list[str] = []

    def looked_at(commit, store):
        try:
            confirm(commit, store)
        except WrongCopies:
            with pytest.raises(FlexibleChecksumError):
                bench.client.get_object(Bucket=bench.bucket, Key=commit.output.key)["Body"].read()
            refused.append(commit.output.key)
            raise

    monkeypatch.setattr("compactor.runs.progress.confirm", looked_at)
    run = the_run(bench)
    receipt = record_partition(run, Counts())
    assert (receipt.status, receipt.counts.repaired) == ("done", 1)
    outputs = {key: body for key, body in bench.contents().items() if key.startswith("compacted/")}
    assert [*outputs.values()] == [SMALL + LARGE]
    assert len(refused) == 1
    assert refused[0] not in outputs
    (commit,) = CommitLog(run.store, run.settings, run.partition).every_commit()
    assert commit.replaces == 1
    check_commit(commit, run.store)
