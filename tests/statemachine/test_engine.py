"""The local engine itself: processes, limits, progress, endings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.machine.environment import engine_environment
from compactor_local import EngineError
from compactor_local.definition import DEFINITION
from compactor_local.embedded import EmbeddedS3
from compactor_local.engine import BRIDGES, Engine, EngineOptions, run_workflow
from tests.statemachine.conftest import BUCKET, FAKES, Run
from tests.statemachine.stand_ins import START_JOB_RUN

REPOSITORY = Path(__file__).parents[2]


def test_a_handler_process_killed_in_the_middle_is_replaced_and_its_work_retried(run: Run) -> None:
    ran = run(partitions=3, trouble={"compact_partition 00001/": ["killed"]})

    assert ran.result.status == "SUCCEEDED"
    assert ran.steps("compact_partition", "00001/") == ["killed", "well"]
    assert ran.result.workers_replaced == 1
    first, second = [call["pid"] for call in ran.calls if call["path"] == "00001/"]
    assert first != second


def test_a_handler_that_outlives_its_time_is_killed_and_its_work_retried(run: Run) -> None:
    ran = run(
        partitions=2,
        trouble={"compact_partition 00000/": ["hangs"]},
        options={"handler_timeout_seconds": 10.0},
    )

    assert ran.result.status == "SUCCEEDED"
    assert ran.steps("compact_partition", "00000/") == ["hangs", "well"]
    assert ran.result.workers_replaced == 1
    (hung, _) = [call for call in ran.calls if call["path"] == "00000/"]
    assert not Path(f"/proc/{hung['pid']}").exists()


def test_a_process_that_keeps_dying_fails_as_lambda_words_it(run: Run) -> None:
    ran = run(partitions=0, trouble={"discover": ["killed"] * 9})

    assert (ran.result.status, ran.result.error) == ("FAILED", "Runtime.ExitError")
    assert "signal: 9" in json.loads(ran.result.cause or "")["errorMessage"]


def test_a_handler_that_cannot_be_imported_fails_as_lambda_words_it(
    engine: Engine,
) -> None:
    modules = {**FAKES, "discover": "no.such.module"}

    result = engine.run({}, run_name="no-module", workers=1, handler_modules=modules)

    assert (result.status, result.error) == ("FAILED", "Runtime.ImportModuleError")


def test_handlers_know_how_much_time_is_left(run: Run) -> None:
    ran = run(partitions=1, options={"handler_timeout_seconds": 100.0})

    assert all(90_000 < call["remaining"] <= 100_000 for call in ran.calls)


def test_handler_processes_are_kept_warm(run: Run) -> None:
    ran = run(partitions=20, workers=2)

    assert len({call["pid"] for call in ran.calls}) <= 2


def test_the_peak_memory_of_the_handlers_is_reported(run: Run) -> None:
    small = run(partitions=1).result.worker_peak_bytes
    large = run(partitions=2, trouble={"compact_partition 00001/": ["swells"]})

    assert small < 120 * 1024 * 1024
    assert 200 * 1024 * 1024 < large.result.worker_peak_bytes < 400 * 1024 * 1024


def test_a_thousand_partitions_run_to_their_end(run: Run) -> None:
    ran = run(partitions=1000, max_concurrency=0)

    assert ran.result.status == "SUCCEEDED"
    assert sorted(ran.paths("compact_partition")) == [f"{n:05}/" for n in range(1000)]


def test_progress_grows_to_the_whole(run: Run) -> None:
    ran = run(
        partitions=6,
        trouble={"compact_partition 00003/": ["more"], "compact_partition 00005/": ["nonsense"]},
    )

    seen = [(one.partitions_done + one.partitions_failed, one.invocations) for one in ran.progress]
    last = ran.progress[-1]
    assert seen == sorted(seen)
    assert (last.partitions_total, last.partitions_done, last.partitions_failed) == (6, 5, 1)
    assert last.objects_done == 6 * 3
    assert last.invocations == 1 + 7 + 1


def test_no_more_partitions_are_in_hand_than_the_concurrency_asked_for(run: Run) -> None:
    ran = run(partitions=6, workers=2, max_concurrency=1)

    assert len({call["pid"] for call in ran.calls if call["function"] == "compact_partition"}) == 1


def test_waits_before_retries_are_as_long_as_the_definition_says_times_the_scale(
    run: Run, tmp_path: Path
) -> None:
    machine = json.loads(DEFINITION.read_text(encoding="utf-8"))
    for rule in machine["States"]["Discover"]["Retry"]:
        rule.pop("JitterStrategy", None)
    definition = tmp_path / "steady.asl.json"
    definition.write_text(json.dumps(machine), encoding="utf-8")

    ran = run(
        partitions=0,
        trouble={"discover": ["TransientStoreError"] * 2},
        options={"wait_scale": 0.1, "definition": definition},
    )

    first, second, third = [call["at"] for call in ran.calls if call["function"] == "discover"]
    assert second - first >= 2 * 0.1
    assert third - second >= 4 * 0.1
    assert third - first < 2 + 4


def test_what_handlers_print_goes_to_the_log(s3: EmbeddedS3, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "run.log"
    (tmp_path / "calls").touch()

    run_workflow(
        {"bucket": BUCKET, "scratch": str(tmp_path), "partitions": 0},
        run_name="logged",
        workers=1,
        endpoint_url=s3.endpoint_url,
        handler_modules=FAKES,
        options=EngineOptions(environment=s3.environment, log=log),
    )

    assert "the fake report says hello" in log.read_text(encoding="utf-8")


def test_no_workers_are_refused_in_one_line() -> None:
    with pytest.raises(EngineError, match="workers: 0 is not accepted; expected 1 or more"):
        run_workflow({}, run_name="r", workers=0)


def stand_in(parameters: dict[str, Any]) -> dict[str, Any]:
    """A bridge for the test below, found there by name."""
    if parameters["Step"]["Name"] == "bad":
        raise ValueError("no such step")
    return {"Step": {"Id": "s-1", "Name": parameters["Step"]["Name"]}}


@pytest.mark.parametrize(
    ("name", "status", "error"), [("good", "SUCCEEDED", None), ("bad", "FAILED", "ValueError")]
)
def test_a_bridge_stands_in_for_a_service_the_interpreter_lacks(
    run: Run, tmp_path: Path, name: str, status: str, error: str | None
) -> None:
    resource = "arn:aws:states:::elasticmapreduce:addStep.sync"
    step = {
        "Type": "Task",
        "Resource": resource,
        "Parameters": {"ClusterId": "j-1", "Step": {"Name.$": "$.name"}},
        "OutputPath": "$.Step",
        "End": True,
    }
    definition = tmp_path / "bridged.asl.json"
    machine = {"StartAt": "AddStep", "States": {"AddStep": step}}
    definition.write_text(json.dumps(machine), encoding="utf-8")

    ran = run(
        name=name,
        options={
            "definition": definition,
            "bridges": {resource: "tests.statemachine.test_engine:stand_in"},
        },
    )

    assert (ran.result.status, ran.result.error) == (status, error)
    assert ran.result.output == ({"Id": "s-1", "Name": "good"} if name == "good" else None)


def test_a_bridge_that_is_not_there_is_refused(run: Run) -> None:
    bridges = {**BRIDGES, START_JOB_RUN: "compactor_local:nothing"}

    with pytest.raises(EngineError, match="cannot be imported"):
        run(partitions=0, options={"bridges": bridges})


_CALLER = """
import sys
from compactor_local.engine import run_workflow
from compactor_local.engine import EngineOptions
from tests.statemachine.conftest import BUCKET, FAKES

run_workflow(
    {"bucket": BUCKET, "scratch": sys.argv[1], "partitions": 9,
     "trouble": {f"compact_partition {n:05}/": ["hangs"] for n in range(9)}},
    run_name=sys.argv[2], workers=2, endpoint_url=sys.argv[3], handler_modules=FAKES,
    options=EngineOptions(wait_scale=0),
)
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_when_the_caller_ends(
    s3: EmbeddedS3, tmp_path: Path, ending: signal.Signals
) -> None:
    (tmp_path / "calls").touch()
    environment = engine_environment(s3.environment, s3.endpoint_url)
    caller = subprocess.Popen(
        [sys.executable, "-c", _CALLER, str(tmp_path), f"ended-{ending}", s3.endpoint_url],
        env=environment,
        cwd=REPOSITORY,
        stderr=subprocess.DEVNULL,
    )
    try:
        handlers = _wait_for(lambda: _pids(tmp_path, "compact_partition"), count=2)
        interpreter = _parent(next(iter(handlers)))
        ours = {*handlers, interpreter, _parent(interpreter)}
        assert caller.pid not in ours
        assert all(_alive(pid) for pid in ours)
        caller.send_signal(ending)
        assert caller.wait(timeout=60) != 0
        _wait_for(lambda: {pid for pid in ours if not _alive(pid)}, count=len(ours))
    finally:
        caller.kill()
        caller.wait()


def _pids(scratch: Path, function: str) -> set[int]:
    lines = (scratch / "calls").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines]
    return {call["pid"] for call in calls if call["function"] == function}


def _wait_for(look: Any, count: int) -> set[int]:
    for _ in range(600):
        if len(found := look()) >= count:
            return set(found)
        time.sleep(0.1)
    raise AssertionError("waited 60 s in vain")


def _parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid")))


def _alive(pid: int) -> bool:
    # A zombie nobody waits for any more is no process left behind.
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
