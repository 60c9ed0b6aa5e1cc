"""Bytes that change on their way: which of them are caught, by what, and which are not.

TLS protects what is on its way; these runs go over plain HTTP, where only checksums do.
"""

from __future__ import annotations

import gzip

from compactor_cli.failures import message_of
from tests.faults.fault_sources import partitions
from tests.support.faults import Fault, Rule

SOURCES, COMMITS = r"^/[^/]*-source/", r"/partitions/.*/commits/"


def lines(count: int) -> bytes:
    line = b"2026-01-02 03:04:05 record-%d of a host\n"
    return b"".join(line % number for number in range(count))


def wrong(fault: Fault, *operations: str, path: str = "", share: float = 1.0) -> Rule:
    return Rule(fault, share, operations=operations, path=path)


def once(fault: Fault, *operations: str, path: str = "") -> Rule:
    return Rule(fault, 1.0, operations=operations, path=path, most=1)


def run_with(world, rule, **fields):
    """A run in which the fault did happen."""
    before = world.bench.proxy.counts[rule.fault]
    result = world.run([rule], seed=7, **fields)
    assert world.bench.proxy.counts[rule.fault] > before
    return result


def test_wrong_bytes_in_parts_and_commits_on_their_way_are_refused_by_the_server(world):
    world.seed(partitions(2, seed=21))
    operations = ("PART", "PUT") if world.bench.checks_signatures else ("PART",)
    before = world.bench.proxy.counts[Fault.FLIPPED_REQUEST]
    world.run(
        [once(Fault.FLIPPED_REQUEST, name, path="/compacted/p") for name in operations], seed=7
    )
    assert world.bench.proxy.counts[Fault.FLIPPED_REQUEST] == before + len(operations)
    world.must_be_proven()


def test_a_wrong_byte_in_a_commit_that_is_read_stops_the_partition_and_changes_nothing(world):
    world.seed([("host/first.log", lines(50))])
    assert world.run().status == "SUCCEEDED"
    before = world.keys(world.lake, "compacted/")
    world.seed([("host/later.log", b"2026-01-02 03:04:05 record-50 of a host\n")])
    result = run_with(world, wrong(Fault.FLIPPED_ANSWER, "GET", path=COMMITS))
    assert result.status == "FAILED"
    assert "damaged" in message_of(result.cause)
    assert world.keys(world.lake, "compacted/") == before
    world.must_be_proven()


def test_wrong_bytes_in_listings_lose_and_double_nothing(world):
    world.seed(partitions(3, seed=25))
    run_with(world, wrong(Fault.FLIPPED_ANSWER, "LIST", share=0.3))
    world.must_not_be_doubled()
    world.must_be_proven()


def test_sources_that_were_read_wrong_are_read_again(world):
    """Over plain HTTP the ETag tells, for it is the MD5 sum of what one PUT wrote."""
    packed = gzip.compress(lines(50), mtime=0)
    world.seed([("gzip/host.log.gz", packed), ("plain/host.log", lines(50))])
    result = run_with(world, once(Fault.FLIPPED_ANSWER, "GET", path=SOURCES))
    assert result.status == "SUCCEEDED", result.cause
    assert result.output["totals"]["quarantined"] == 0
    assert result.output["totals"]["records"] == 100
    world.must_be_proven()


def test_a_source_that_always_comes_wrong_fails_its_partition_and_is_not_compacted(world):
    world.seed([("plain/host.log", lines(50))])
    result = run_with(world, wrong(Fault.FLIPPED_ANSWER, "GET", path=SOURCES))
    assert result.status == "FAILED"
    assert "no two alike" in message_of(result.cause)
    assert world.keys(world.lake, "compacted/") == []
    world.must_be_proven()
