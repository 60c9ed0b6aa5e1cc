"""``compactor run`` with processes of its own: beside the engine, killed, hung and interrupted."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import compactor
from compactor.discovery.discover import discover
from compactor.discovery.work_list import write_work
from compactor.errors import InvalidInput
from compactor.orchestration.messages import DONE, Order
from compactor.orchestration.partition_retry import LOST, STOPPED
from compactor.partition.receipts import Counts
from compactor.s3.store import S3Store, make_client
from compactor_cli import whole
from compactor_cli.commands import main
from compactor_cli.demo_run import execute
from compactor_cli.failures import EXIT_TIME_RAN_OUT
from compactor_cli.machine.environment import engine_environment
from compactor_cli.machine.partition_workers import PartitionWorkers, WorkerTask
from compactor_cli.whole import Machine
from compactor_local.embedded import EmbeddedS3
from tests.conftest import REPO_ROOT
from tests.e2e.test_cli_commands import EACH, PARTITIONS, Lake
from tests.support.examples import settings

RUNS = "_compactor/compacted/runs/"


def run_documents(lake: Lake) -> set[str]:
    """What the one run left, but for the results that only Step Functions writes."""
    names = (key.removeprefix(RUNS).partition("/")[2] for key in lake.keys(RUNS))
    return {name for name in names if not name.startswith("results/")}


def test_the_engine_and_the_processes_write_the_same_outputs_and_documents(
    s3: EmbeddedS3, capsys: pytest.CaptureFixture[str]
) -> None:
    left: list[tuple[object, ...]] = []
    for engine in ("processes", "workflow"):
        lake = Lake(s3)
        if engine == "workflow":
            store = S3Store(make_client(s3.endpoint_url))
            machine = Machine(1, s3.endpoint_url)
            source, destination = lake.uris
            given = {"s3_source_uri": source, "s3_destination_uri": destination, "depth": 1}
            ended = execute(given, lake.settings, store, machine)
            document = json.loads(json.dumps(ended.to_dict()))
        else:
            words = ("--depth", "1", "--workers", "1", "--json")
            assert main(["run", *lake.uris, *lake.endpoint, *words]) == 0
            document = json.loads(capsys.readouterr().out)
        summary = {
            name: value
            for name, value in document["summary"].items()
            # What each asks beside the workers is its own.
            if name not in {"run_id", "seconds", "report_uri", "cost"}
        }
        # The names of groups are hashes of their sources, bucket included.
        outputs = sorted(
            (key.rpartition("-")[0], lake.read(key)) for key in lake.keys("compacted/")
        )
        assert len(outputs) == 2 * PARTITIONS
        left.append((document["status"], summary, outputs, run_documents(lake)))
    assert left[0] == left[1]


@pytest.fixture
def workers(s3: EmbeddedS3, tmp_path: Path) -> Iterator[tuple[PartitionWorkers, list[Order]]]:
    """One process for a run that has begun, and its orders."""
    lake = Lake(s3)
    store = S3Store(lake.client)
    found = discover(lake.settings, store, time.time())
    write_work(found, lake.settings, "run-1", store)
    with (tmp_path / "log").open("wb") as log:
        environment = engine_environment(s3.environment, s3.endpoint_url)
        task = WorkerTask(lake.settings, "run-1", s3.endpoint_url, environment, log, 60.0)
        made = PartitionWorkers(1, task)
        try:
            yield made, [Order.to_compact(item, Counts()) for item in found.partitions]
        finally:
            made.close()


def log_lines(log: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def pid_of(workers: PartitionWorkers) -> int:
    (child,) = workers.pool._children
    assert child is not None
    return child.pid


@pytest.mark.parametrize("trouble", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_is_replaced_and_loses_its_order_alone(
    workers: tuple[PartitionWorkers, list[Order]], tmp_path: Path, trouble: signal.Signals
) -> None:
    made, orders = workers
    assert made.carry_out(orders[0]).status == DONE
    first = pid_of(made)
    os.kill(first, trouble)
    object.__setattr__(made._task, "call_seconds", 1.0)
    lost = made.carry_out(orders[1])
    assert lost.error == LOST
    hung = "was killed after a timeout of 1 s"
    how = hung if trouble is signal.SIGSTOP else "was killed by signal 9 (SIGKILL)"
    assert lost.cause == f"its worker process {how}"
    (line,) = (one for one in log_lines(tmp_path / "log") if one["level"] == "ERROR")
    assert (line["path"], line["message"]) == (orders[1].path, f"WorkerLost: {lost.cause}")
    object.__setattr__(made._task, "call_seconds", 60.0)
    again = made.carry_out(orders[1])
    assert again.status == DONE
    assert again.compacted is not None
    assert again.compacted.counts.objects_in == EACH
    assert (made.pool.replaced, pid_of(made) != first) == (1, True)
    assert made.pool.peak_bytes > 20 * 1024 * 1024


def test_a_stopped_pool_begins_nothing_more(
    workers: tuple[PartitionWorkers, list[Order]],
) -> None:
    made, orders = workers
    assert made.carry_out(orders[0]).status == DONE
    made.stop()
    assert made.carry_out(orders[1]).error == STOPPED


def processes_with(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_text(errors="replace"):
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def uploads_to_outputs(lake: Lake) -> set[str]:
    uploads = lake.client.list_multipart_uploads(Bucket=lake.bucket).get("Uploads", [])
    return {one["UploadId"] for one in uploads if one["Key"].startswith("compacted/")}


def uploads_of_commits(lake: Lake) -> set[str]:
    entries = (
        key
        for key in lake.keys("_compactor/compacted/partitions/")
        if "/commits/" in key and key.endswith(".gz")
    )
    documents = [json.loads(gzip.decompress(lake.read(key))) for key in entries]
    # Checkpoints among them have none.
    return {one["output"]["upload_id"] for one in documents if one.get("output")}


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc to look at")
def test_an_interrupt_ends_a_run_and_its_processes_says_what_stands_and_is_made_good(
    s3: EmbeddedS3, tmp_path: Path
) -> None:
    # So many that the run is not over before somebody sees its first output.
    many = 40
    lake, mark, log = Lake(s3, many), uuid.uuid4().hex, tmp_path / "log"
    words = ["--depth", "1", "--workers", "2", "--log", str(log)]
    process = subprocess.Popen(
        [sys.executable, "-m", "compactor_cli", "run", *lake.uris, *lake.endpoint, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPO_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MARK": mark},
    )
    deadline = time.monotonic() + 60
    while not lake.keys("compacted/"):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    stands = r"compactor: interrupted: (\d+) of 40 partitions are done; committed work is kept"
    match = re.match(stands, err)
    assert match, err
    assert int(match[1]) < many
    assert err.count("\n") == 1
    deadline = time.monotonic() + 60
    while left := processes_with(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    # Ended between two requests: what is under way is committed already, the rest was aborted.
    assert uploads_to_outputs(lake) <= uploads_of_commits(lake)
    assert main(["run", *lake.uris, *lake.endpoint, "--depth", "1", "--workers", "1"]) == 0
    assert not uploads_to_outputs(lake)
    assert lake.prove().holds
    # Each of two workers may have been reading a group, and have committed what it had of it.
    assert 2 * many <= len(lake.keys("compacted/")) <= 2 * many + 2


def test_a_run_whose_time_is_over_shows_what_stands_and_the_next_one_does_the_rest(
    s3: EmbeddedS3, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(s3)
    words = ["run", *lake.uris, *lake.endpoint, "--depth", "1", "--workers", "1"]
    # Less than a minute: no partition is begun.
    monkeypatch.setattr(whole, "LEAST_LIMIT_SECONDS", 1.0)
    assert main([*words, "--time-limit", "59", "--json"]) == EXIT_TIME_RAN_OUT == 3
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["status"], document["error"]) == ("MORE", "TimeRanOut")
    assert told.err.startswith(
        f"compactor: time limit reached: 0 of {PARTITIONS} partitions are done"
    )
    assert not lake.keys("compacted/")
    assert main([*words, "--time-limit", "600"]) == 0
    assert lake.prove().holds


def test_the_workers_of_a_run_have_no_more_time_than_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 1_000.0)
    monkeypatch.setattr(whole, "time", clock)
    task = WorkerTask(settings(), "run-1", None, {}, 0, 900.0, whole._Limit(200.0))
    clock.monotonic = lambda: 1_030.0
    assert task.seconds == 170
    assert replace(task, call_seconds=60.0).seconds == 60
    assert replace(task, deadline=None).seconds == 900


@pytest.mark.parametrize("limit", ["119", "0", "-1", "nan", "inf"])
def test_a_time_limit_that_leaves_time_for_nothing_is_refused(
    limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "s3://a/b/", "s3://c/d/", f"--time-limit={limit}"]) == 2
    assert "--time-limit" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="time_limit_seconds"):
        compactor.run("s3://a/b/", "s3://c/d/", time_limit_seconds=float(limit))


def test_the_log_has_a_line_for_each_partition_and_the_traceback_of_a_failure(
    s3: EmbeddedS3, tmp_path: Path
) -> None:
    lake, log = Lake(s3), tmp_path / "new" / "log"
    damaged = f"_compactor/compacted/partitions/p2/commits/{1:020d}.json.gz"
    lake.write(damaged, b"no commit")
    words = ("--depth", "1", "--workers", "1", "--log", str(log))
    assert main(["run", *lake.uris, *lake.endpoint, *words]) == 1
    lines = log_lines(log)
    assert {line["path"] for line in lines} == {f"p{n}/" for n in range(PARTITIONS)}
    (failed,) = (line for line in lines if line["level"] == "ERROR")
    assert failed["path"] == "p2/"
    assert "IntegrityError" in failed["exception"]
