"""Large members of gzip and frames of zstd, copied into an output by the servers themselves."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
import zstandard

from compactor.clock import NoDeadline, SystemClock
from compactor.conditions import StoreTraits
from compactor.limits import WorkerLimits
from compactor.log.log import CommitLog
from compactor.model import Partition, StoredPart
from compactor.outputs.restore import Found, restore
from compactor.outputs.verify import check_commit
from compactor.runs.given import PartitionRun
from compactor.runs.partition import record_partition
from compactor.runs.receipts import Counts
from compactor.settings.settings import Settings
from compactor.stores.s3 import S3Store
from tests.contract.benches import OnServer
from tests.contract.cases import MIB

# Behind 5 MiB that top up what is before, as many are left for a part of its own.
LIMITS = WorkerLimits(copy_slice_bytes=10 * MIB)
COPYING = ["moto-boto3", "moto-obstore", "versitygw-boto3", "versitygw-obstore"]


@cache
def large(seed: int) -> bytes:
    """Lines that are stored in more than 10 MiB, for nothing in them repeats itself."""
    draw = random.Random(seed)
    some = (
        b'{"id":%d,"v":"%s"}\n' % (n, draw.randbytes(5_000).hex().encode()) for n in range(2_200)
    )
    return b"".join(some)


def member(content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=7)


def frame(content: bytes) -> bytes:
    return zstandard.compress(content, 1)


def unpacked(stored: bytes) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(
        io.BytesIO(stored), read_across_frames=True
    ) as one:
        return one.read()


@dataclass(frozen=True)
class Kind:
    """How sources are stored, and the setting by which they go in so."""

    ending: str
    pack: Callable[[bytes], bytes]
    plain: Callable[[bytes], bytes]
    given: dict[str, str]


GZIP = Kind("gz", member, gzip.decompress, {"gzip_output": "members"})
ZSTD = Kind("zst", frame, unpacked, {"zstd_output": "frames"})


def the_run(bench: OnServer, kind: Kind) -> PartitionRun:
    settings = Settings.from_input(
        {
            "s3_source_uri": f"s3://{bench.bucket}/logs/",
            "s3_destination_uri": f"s3://{bench.bucket}/compacted/",
            "settle_seconds": 0,
            "open_partition_seconds": 0,
            **kind.given,
        }
    )
    traits = StoreTraits(deletes_many=False, deletes_one=False)
    store = bench.store.with_traits(traits)
    partition = Partition(bench.bucket, "logs/", "")
    settings = replace(settings, limits=LIMITS)
    return PartitionRun(partition, settings, store, SystemClock(), NoDeadline(), "run-1")


def the_sources(kind: Kind) -> list[bytes]:
    """Small ones and large ones, the last of which lacks its newline."""
    contents = [b'{"id":0}\n', large(1), b'{"id":1}', large(2), large(3)[:-1]]
    return [kind.pack(content) for content in contents]


def wanted() -> bytes:
    """What a reader is to find in the output of these."""
    return b'{"id":0}\n' + large(1) + b'{"id":1}\n' + large(2) + large(3)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each part that a store copied."""
    found: list[int] = []
    copy = S3Store.copy_part

    def seen(store: S3Store, *which: Any) -> StoredPart:
        part = copy(store, *which)
        found.append(part.size)
        return part

    monkeypatch.setattr(S3Store, "copy_part", seen)
    return found


def must_be_whole(bench: OnServer, run: PartitionRun, stored: Sequence[bytes], kind: Kind) -> None:
    """One output, at once, that readers take, and that gives its sources back."""
    # boto3 compares the checksum that the server keeps of it.
    ((key, body),) = ((k, b) for k, b in bench.contents().items() if k.startswith("compacted/"))
    assert kind.plain(body) == wanted()
    (commit,) = CommitLog(run.store, run.settings, run.partition).every_commit()
    assert commit.replaces is None
    assert commit.output is not None
    assert commit.output.crc32 == zlib.crc32(body)
    head = run.store.head(bench.bucket, key)
    assert head is not None
    assert head.crc32 == zlib.crc32(body)
    check_commit(commit, run.store)
    back = restore(Found(commit, commit.rows), run.store, as_stored=True)
    assert [b"".join(pieces) for _, pieces in back] == stored


@pytest.mark.parametrize("bench", COPYING, indirect=True)
@pytest.mark.parametrize("kind", [GZIP, ZSTD], ids=["gzip", "zstd"])
def test_servers_copy_them_under_the_checksum_of_what_was_read(
    bench: OnServer, kind: Kind, copied: list[int]
) -> None:
    stored = the_sources(kind)
    for number, body in enumerate(stored):
        # Without a checksum of their own: versitygw would take it for that of a range.
        key = f"logs/{number}.json.{kind.ending}"
        bench.store_client.put_object(Bucket=bench.bucket, Key=key, Body=body)
    run = the_run(bench, kind)
    assert record_partition(run, Counts()).status == "done"
    assert len(copied) == 3
    assert sum(copied) > sum(map(len, stored)) - 3 * 5 * MIB
    must_be_whole(bench, run, stored, kind)


@pytest.mark.parametrize("bench", ["versitygw-boto3"], indirect=True)
def test_where_a_server_tells_a_wrong_checksum_of_copies_nothing_wrong_is_published(
    bench: OnServer, copied: list[int]
) -> None:
    stored = the_sources(GZIP)
    for number, body in enumerate(stored):
        bench.seed(f"logs/{number}.json.gz", body)
    run = the_run(bench, GZIP)
    receipt = record_partition(run, Counts())
    assert (receipt.status, receipt.counts.repaired) == ("done", 0)
    assert copied
    must_be_whole(bench, run, stored, GZIP)
    assert bench.uploads() == set()
