"""Executors and drivers that die, tasks that run twice: on a real cluster of two executors."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from compactor.clock import NoDeadline, SystemClock
from compactor.partition.inputs import PartitionRun
from compactor_spark.oversized import Budget, OversizedPartition
from tests.spark.cluster import Cluster, python_workers
from tests.spark.gate import Gate, Request
from tests.spark.job import RUN_SECONDS, Job

MIB = 1024 * 1024
GROUPS, SOURCES_OF_A_GROUP, RECORDS_OF_A_SOURCE = 4, 4, 6
RECORDS = GROUPS * SOURCES_OF_A_GROUP * RECORDS_OF_A_SOURCE
# How the keys of the groups' last sources end.
LAST_SOURCES = tuple(f"/{(n + 1) * SOURCES_OF_A_GROUP - 1:02}.log" for n in range(GROUPS))
HELD_SECONDS = 240.0
# The store is asked for its conditions with uploads, too; those are of the state prefix.
OUTPUTS = "compacted/"
STAMP = b"2026-01-02 03:04:05 "


@pytest.fixture
def job(new_job: Callable[..., Job], two_executors: Cluster, proxy: Gate) -> Iterator[Job]:
    """Four groups of 24 MiB: each begins its upload before its last source is read."""
    made = new_job(two_executors.url, target_bytes=25 * MIB)
    made.endpoint = proxy.endpoint_url
    sources = {}
    for number in range(GROUPS * SOURCES_OF_A_GROUP):
        records = range(number * RECORDS_OF_A_SOURCE, (number + 1) * RECORDS_OF_A_SOURCE)
        body = b"".join(STAMP + b"record-%d " % one + b"x" * MIB + b"\n" for one in records)
        sources[f"a/{number:02}.log"] = body
    made.seed(sources)
    made.discover()
    yield made
    made.kill_started()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    # A busy machine takes a minute to start a driver and its executors.
    end = time.monotonic() + RUN_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        assert process.poll() is None, "the job has ended too soon"
        time.sleep(0.05)


def must_be_whole(job: Job) -> None:
    """Every record once, and nothing left for a further run but to see that."""
    assert job.readable() == dict.fromkeys(range(RECORDS), 1)
    outputs = set(job.outputs())
    clock, deadline = SystemClock(), NoDeadline()
    for item in job.items:
        run = PartitionRun(item, job.settings, job.store, clock, deadline, "run-next")
        partition = OversizedPartition(run)
        assert partition.plan(Budget(1_000)) == []
        assert partition.finish().status == "done"
    assert set(job.outputs()) == outputs
    assert len(outputs) == GROUPS
    assert job.uploads() == []


def test_an_executor_killed_in_the_middle_of_a_task_costs_nothing(
    job: Job, two_executors: Cluster, proxy: Gate
) -> None:
    opened = threading.Event()

    def hold(request: Request) -> None:
        if request.method == "GET" and request.path.endswith(LAST_SOURCES):
            opened.wait(HELD_SECONDS)

    proxy.rules.append(hold)
    process = job.start()
    wait_until(lambda: len(job.uploads(OUTPUTS)) == 2, process)
    executors = two_executors.executors()
    assert len(executors) == 2
    os.kill(executors[0], signal.SIGKILL)
    wait_until(lambda: executors[0] not in two_executors.executors(), process)
    opened.set()
    ended = job.wait(process)
    assert ended.code == 0, ended.log[-4000:]
    reads = [proxy.count("GET", ending) for ending in LAST_SOURCES]
    assert sorted(reads) == [1, 1, 1, 2], "one group was begun twice"
    assert job.receipt("a/").counts.objects_out == GROUPS
    must_be_whole(job)


def test_a_slow_task_runs_twice_and_publishes_once(job: Job, proxy: Gate) -> None:
    job.conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.minTaskRuntime": "500ms",
    }
    slow = LAST_SOURCES[1]
    ended = threading.Event()
    seen = threading.Lock()

    def hold_the_first(request: Request) -> None:
        if request.path.endswith(slow) and request.method == "GET" and seen.acquire(blocking=False):
            ended.wait(HELD_SECONDS)

    proxy.rules.append(hold_the_first)
    outcome = job.run()
    ended.set()
    assert outcome.code == 0, outcome.log[-4000:]
    assert proxy.count("GET", slow) == 2
    begun = [
        one
        for one in proxy.requests
        if (one.method, one.query.rstrip("=")) == ("POST", "uploads")
        and one.path.startswith(f"/{job.lake}/{OUTPUTS}")
    ]
    assert len(begun) == GROUPS + 1, "both attempts had begun an upload"
    assert job.receipt("a/").counts.objects_out == GROUPS
    must_be_whole(job)


def test_a_driver_killed_between_two_commits_is_made_good_by_the_next_job(
    job: Job, proxy: Gate
) -> None:
    held = threading.Event()

    def hold(request: Request) -> None:
        if request.method == "PUT" and request.path.endswith("/00000000000000000002.json.gz"):
            held.set()
            opened.wait(HELD_SECONDS)

    opened = threading.Event()
    proxy.rules.append(hold)
    process = job.start()
    wait_until(held.is_set, process)
    job.kill(process)
    process.wait()
    committed = job.outputs()
    assert len(committed) == 1
    # Whatever still runs on the executors finds its requests unanswered until they are gone.
    proxy.rules.clear()
    opened.set()
    process.communicate()
    ended = job.run()
    assert ended.code == 0, ended.log[-4000:]
    assert committed.items() <= job.outputs().items()
    must_be_whole(job)


def test_when_spark_gives_the_job_up_every_group_gets_a_job_of_its_own(
    job: Job, proxy: Gate
) -> None:
    # Without a second number this master tries no task twice.
    job.master = "local[2]"
    opened = threading.Event()

    def hold(request: Request) -> None:
        if request.method == "GET" and request.path.endswith(LAST_SOURCES):
            opened.wait(HELD_SECONDS)

    proxy.rules.append(hold)
    process = job.start()
    wait_until(lambda: len(job.uploads(OUTPUTS)) == 2, process)
    both = set(python_workers(process.pid))
    os.kill(min(both), signal.SIGKILL)
    # Spark ends the other task, too.
    wait_until(lambda: both.isdisjoint(python_workers(process.pid)), process)
    opened.set()
    ended = job.wait(process)
    assert ended.code == 0, ended.log[-4000:]
    assert ended.log.count("Starting job: ") == 1 + GROUPS
    assert job.receipt("a/").counts.objects_out == GROUPS
    must_be_whole(job)
