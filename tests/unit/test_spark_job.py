"""The Spark job of a run on one machine: the workflow's own step, without the workflow."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from compactor_cli.machine import spark_job
from compactor_cli.machine.installed import definition
from compactor_cli.machine.spark_job import LocalSpark, job_arguments
from compactor_cli.machine.spark_submit import SparkHere, SparkMissing, local_command
from compactor_local.definition import VALUES

RUN_URI = "s3://lake/_compactor/compacted/runs/run-1/"
# Behaves as spark-submit does towards whoever started it.
SCRIPT = """#!/bin/sh
echo "WARN what Spark says to itself"
echo "compact_partitions: half of it"
{rest}
"""


def workflow_arguments() -> Sequence[str]:
    """The step's command line, as the state machine makes it for the run ``run-1``."""
    states = json.loads(definition().read_text("utf-8"))["States"]
    array = states["AddStepToCluster"]["Parameters"]["Step"]["HadoopJarStep"]["Args.$"]
    array = re.sub(r"States\.Format\('([^']*)', \$\.run_id\)", r"'\1'", array)
    words = re.findall(r"'([^']*)'", array)
    script = "s3://local/spark/compact_partitions.py"
    filled = [
        word.replace("{}", "run-1")
        .replace("${SparkScriptUri}", script)
        .replace("${SparkTableConf}", VALUES["SparkTableConf"])
        for word in words
    ]
    return [*filled, RUN_URI]


def test_the_job_is_started_with_what_the_workflow_starts_it_with() -> None:
    here = SparkHere(Path("/spark"), Path("/java/bin/java"))
    mine = local_command(job_arguments("run-1", RUN_URI), here)
    assert sorted(mine) == sorted(local_command(workflow_arguments(), here))
    assert mine[-3].endswith("compactor_spark/compact_partitions.py")
    assert mine[-2:] == ["--run", RUN_URI]


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkHere:
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    here = SparkHere(home, tmp_path / "java" / "bin" / "java")
    monkeypatch.setattr(spark_job, "find_spark", lambda: here)
    return here


def submit(here: SparkHere, rest: str) -> None:
    here.spark_submit.write_text(SCRIPT.format(rest=rest), encoding="ascii")
    here.spark_submit.chmod(0o755)


@pytest.mark.parametrize(("code", "failure"), [(0, ""), (3, "exit status 3; see the log")])
def test_lines_for_a_person_are_reported_and_the_rest_is_logged(
    spark: SparkHere, tmp_path: Path, code: int, failure: str
) -> None:
    submit(spark, f"exit {code}")
    lines: list[str] = []
    with (tmp_path / "log").open("wb") as log:
        told = LocalSpark({}, log).run("run-1", RUN_URI, lines.append)
    assert told.startswith(failure)
    assert bool(told) == bool(code)
    # Until Spark says something itself it starts, which takes it several seconds.
    assert lines == ["starting", "half of it"]
    assert "WARN what Spark says to itself" in (tmp_path / "log").read_text()


def test_a_job_that_is_stopped_ends_with_its_processes(spark: SparkHere, tmp_path: Path) -> None:
    submit(spark, f"echo $$ > {tmp_path}/pid; sleep 100")
    begun = threading.Event()
    told: list[str] = []
    with (tmp_path / "log").open("wb") as log:
        job = LocalSpark({}, log)
        thread = threading.Thread(
            target=lambda: told.append(job.run("run-1", RUN_URI, lambda line: begun.set()))
        )
        thread.start()
        assert begun.wait(60)
        # The line is told before the script comes to what follows.
        noted, deadline = tmp_path / "pid", time.monotonic() + 60
        while not (noted.exists() and noted.read_text().endswith("\n")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        job.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert told
    assert told[0], "a job that was killed did not succeed"
    pid = noted.read_text().strip()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert job.run("run-2", RUN_URI, lambda line: None) == "the run was stopped"


def test_without_spark_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> SparkHere:
        raise SparkMissing("no Java on PATH")

    monkeypatch.setattr(spark_job, "find_spark", nothing)
    told = LocalSpark({}, -3).run("run-1", RUN_URI, lambda line: None)
    assert told.startswith("no Java on PATH: install pyspark (pip install 's3-compactor[spark]')")
