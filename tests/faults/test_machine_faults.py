"""What befalls the machine of the workers: its disk is full, its clock is wrong."""

from __future__ import annotations

import json

import pytest

from compactor_cli.failures import message_of
from compactor_local.engine import Engine, EngineOptions
from tests.faults.fault_sources import partitions
from tests.support.faults import Fault, Rule

FULL_DISK = "machine without room for a single byte in any file"
FULL_LOG = "log on a full device"
# The shell counts blocks: none.
NO_ROOM = "ulimit -f 0"


def run_command(world, *options, source, before=""):
    """``compactor run`` as a person starts it; returns the process and what it printed."""
    return world.compactor(
        *("run", f"{world.places[0]}{source}-*/", world.places[1]),
        *("--settle-seconds", "0"),
        *("--workers", "2", "--json", *options),
        before=before,
    )


def test_a_machine_that_can_write_no_file_and_no_log_compacts_all_the_same(world, tmp_path):
    figures, probe = world.bench.figures, tmp_path / "probe"
    world.seed(partitions(3, seed=11, name="full"))
    ended = run_command(world, source="full", before=f"{NO_ROOM}; (echo something > {probe})")
    assert probe.read_bytes() == b"", "the limit does not hold"
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["status"] == "SUCCEEDED"

    world.seed(partitions(1, seed=12, name="log"))
    ended = run_command(world, "--log", "/dev/full", source="log")
    assert ended.stdout, ended.stderr
    answer = json.loads(ended.stdout)
    assert (ended.returncode == 0) == (answer["status"] == "SUCCEEDED")
    assert answer["status"] == "SUCCEEDED" or message_of(answer["cause"])

    figures.faults.update([FULL_DISK, FULL_LOG])
    figures.runs += 2
    world.must_be_proven()


@pytest.fixture(scope="module")
def engine_with_clock(bench, worker_clock):
    """An engine whose workers look at a clock that jumps."""
    try:
        seen = worker_clock.seconds()
    except ValueError:
        seen = 0.0
    worker_clock.set("+2d")
    ahead = worker_clock.seconds() - seen
    worker_clock.set("+0s")
    if not 0.9 * 2 * 86_400 < ahead < 1.1 * 2 * 86_400:
        pytest.skip("libfaketime does not work on this machine")
    environment = {**bench.environment, **worker_clock.environment}
    options = EngineOptions(environment=environment)
    with Engine(options, endpoint_url=bench.proxy.endpoint_url) as engine:
        yield engine
    worker_clock.set("+0s")


@pytest.fixture
def clock(worker_clock):
    worker_clock.set("+0s")
    yield worker_clock
    worker_clock.set("+0s")


@pytest.mark.parametrize("offset", ["-14m", "+14m"])
def test_a_clock_that_is_wrong_within_what_s3_takes_decides_only_what_has_settled(
    world, engine_with_clock, clock, offset
):
    world.seed(partitions(2, seed=13))
    clock.set(offset)
    result = world.run(engine=engine_with_clock, settle_seconds=60)
    assert result.status == "SUCCEEDED", result.cause
    # To a clock that is ahead the sources of just now are old, to one behind not yet written.
    assert bool(world.keys(world.lake, "compacted/")) == (offset == "+14m")
    world.must_not_be_doubled()


@pytest.mark.parametrize("offset", ["-1h", "+2d"])
def test_a_clock_that_s3_refuses_is_reported_as_such_in_one_line(
    world, engine_with_clock, clock, offset
):
    world.seed(partitions(1, seed=14))
    clock.set(offset)
    result = world.run(engine=engine_with_clock)
    assert result.status == "FAILED"
    assert "RequestTimeTooSkewed" in (result.cause or "")
    assert not world.keys(world.lake, "")


def test_a_clock_that_jumps_during_a_run_loses_and_doubles_nothing(world, engine_with_clock, clock):
    world.seed(partitions(4, seed=15))
    before = world.bench.proxy.counts[Fault.CLOCK_JUMP]
    world.run([Rule(Fault.CLOCK_JUMP, 0.3)], seed=15, engine=engine_with_clock)
    assert world.bench.proxy.counts[Fault.CLOCK_JUMP] > before
    clock.set("+0s")
    world.must_be_proven()
