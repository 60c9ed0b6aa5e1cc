"""EMR on this machine: its answers, its errors, and that no job outlives who asked for it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from compactor_cli.machine.installed import spark_script
from compactor_cli.machine.processes import Child
from compactor_cli.machine.spark_submit import SparkHere, SparkMissing
from compactor_dev import IMPORT_ROOTS
from compactor_local import services
from compactor_local.embedded import EmbeddedS3
from compactor_local.interpreter import BridgeError
from tests.statemachine.conftest import BUCKET
from tests.support.embedded import find_embedded

# Writes down what it was called with, starts a process in a group of its own as Spark's Python
# workers are, and ends or stays as its last argument says.
_SPARK_SUBMIT = f"""#!{sys.executable}
import json, os, sys, time
print("compact_partitions: 1/2 groups, 5 objects/s", flush=True)
print("WARN something", flush=True)
how = sys.argv[-1].rpartition("/")[2]
if how == "stays":
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        time.sleep(60)
with open(os.environ["WRITTEN"], "w") as written:
    pids = [os.getpid(), child] if how == "stays" else [os.getpid()]
    json.dump({{"arguments": sys.argv[1:], "pids": pids, "cwd": os.getcwd()}}, written)
    written.flush()
os.rename(os.environ["WRITTEN"], os.environ["WRITTEN"] + ".done")
if how == "stays":
    time.sleep(60)
sys.exit(int(how or 0))
"""
_ARGS = [
    *("spark-submit", "--deploy-mode", "cluster", "--conf", "spark.speculation=true"),
    *("--conf", "spark.jars=s3://a/table.jar"),
]


class Spark:
    """A spark-submit that is none."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.here = SparkHere(directory, directory / "bin" / "java")
        self.here.spark_submit.parent.mkdir()
        self.here.spark_submit.write_text(_SPARK_SUBMIT, encoding="ascii")
        self.here.spark_submit.chmod(0o755)
        self.lines: list[str] = []
        self.ends: list[Mapping[str, Any]] = []

    def called(self) -> dict[str, Any]:
        """What it wrote down; waits for it."""
        done = self.directory / "written.done"
        wait_for(done.exists)
        called: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
        return called


@pytest.fixture
def spark(tmp_path: Path, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Spark:
    find_embedded(s3, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(IMPORT_ROOTS))
    monkeypatch.setenv("WRITTEN", str(tmp_path / "written"))
    made = Spark(tmp_path)
    monkeypatch.setattr(services, "find_spark", lambda: made.here)
    callbacks = services.Callbacks(made.lines.append, made.ends.append)
    monkeypatch.setattr(services, "callbacks", callbacks)
    return made


def wait_for(what: Any) -> None:
    for _ in range(600):
        if what():
            return
        time.sleep(0.1)
    raise AssertionError("waited 60 s in vain")


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False


def step(how: str = "") -> dict[str, Any]:
    arguments = [*_ARGS, "s3://a/compact_partitions.py", "--run", f"s3://{BUCKET}/runs/local/{how}"]
    jar = {"Jar": "command-runner.jar", "Args": arguments}
    return {"ClusterId": "j-THEIRS", "Step": {"Name": "a step", "HadoopJarStep": jar}}


def test_a_step_runs_with_its_own_arguments(spark: Spark) -> None:
    answer = services.add_step(step())

    assert answer["Step"]["Status"] == {"State": "COMPLETED"}
    arguments = spark.called()["arguments"]
    assert arguments[-3:] == [
        str(spark_script()),
        "--run",
        f"s3://{BUCKET}/runs/local/",
    ]
    assert "spark.speculation=true" in arguments
    assert "cluster" not in arguments
    # What a cluster is shipped: this machine's own is in the environment of the run.
    assert not any("spark.jars" in one for one in arguments)


def test_a_job_leaves_no_directory(spark: Spark) -> None:
    services.add_step(step())

    where = spark.called()["cwd"]
    assert Path(where).name.startswith("compactor-spark-")
    assert not Path(where).exists()


def test_only_the_jobs_own_lines_are_progress(spark: Spark) -> None:
    services.add_step(step())

    assert spark.lines == ["starting", "1/2 groups, 5 objects/s"]


@pytest.mark.parametrize("name", ["spark-result.json", "spark-error.json"])
def test_what_the_job_left_on_s3_is_reported_at_its_end(
    spark: Spark, s3: EmbeddedS3, name: str
) -> None:
    client = boto3.client("s3", endpoint_url=s3.endpoint_url)
    counts = {"done": 2, "failed": 1, "objects_in": 7}
    body = json.dumps({"partitions": counts}).encode()
    client.put_object(Bucket=BUCKET, Key=f"runs/local/{name}", Body=body)
    try:
        services.add_step(step())
    finally:
        client.delete_object(Bucket=BUCKET, Key=f"runs/local/{name}")

    assert spark.ends == [counts]


def test_a_failed_step_says_no_more_than_emr_does(spark: Spark) -> None:
    with pytest.raises(BridgeError) as caught:
        services.add_step(step("3"))

    assert caught.value.error == "States.TaskFailed"
    failed = json.loads(caught.value.cause)["Step"]
    assert failed["Name"] == "a step"
    assert failed["Status"] == {"State": "FAILED", "FailureDetails": {"Reason": "Unknown Error."}}
    assert spark.ends == []


def test_without_spark_the_step_fails_and_says_what_to_install(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> SparkHere:
        raise SparkMissing("no pyspark here")

    monkeypatch.setattr(services, "find_spark", nothing)
    with pytest.raises(BridgeError) as caught:
        services.add_step(step())

    reason = json.loads(caught.value.cause)["Step"]["Status"]["FailureDetails"]["Reason"]
    assert reason.startswith("no pyspark here: install pyspark (pip install 's3-compactor[spark]')")
    assert "\n" not in reason


def job_run(how: str = "") -> dict[str, Any]:
    submit = {
        "EntryPoint": "s3://a/compact_partitions.py",
        "EntryPointArguments": ["--run", f"s3://{BUCKET}/runs/local/{how}"],
        "SparkSubmitParameters": "--archives s3://a/deps.zip#deps --conf spark.speculation=true",
    }
    return {"ApplicationId": "00a", "Name": "a run", "JobDriver": {"SparkSubmit": submit}}


def test_a_serverless_job_run_is_the_same_job(spark: Spark) -> None:
    assert services.start_job_run(job_run())["State"] == "SUCCESS"

    serverless = spark.called()["arguments"]
    services.add_step(step())
    assert spark.called()["arguments"] == serverless


def test_a_failed_serverless_job_run_says_so_in_its_own_words(spark: Spark) -> None:
    with pytest.raises(BridgeError) as caught:
        services.start_job_run(job_run("1"))

    failed = json.loads(caught.value.cause)
    assert (failed["State"], failed["StateDetails"]) == ("FAILED", "Unknown Error.")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at /proc")
def test_a_job_ends_with_its_caller(spark: Spark) -> None:
    job = Child("compactor_cli.machine.spark_process")
    command = [str(spark.here.spark_submit), "stays"]
    job.send({"command": command, "environment": dict(os.environ)})
    called = spark.called()
    assert len(called["pids"]) == 2

    # Closing its standard input is all that a killed engine does.
    job.end(20)

    wait_for(lambda: not any(alive(pid) for pid in called["pids"]))
    assert not Path(called["cwd"]).exists()
