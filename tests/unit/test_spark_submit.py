"""The arguments of a Spark step, as this machine runs them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor_cli.machine.installed import import_roots, spark_script
from compactor_cli.machine.spark_submit import (
    MASTER_VARIABLE,
    SparkHere,
    SparkMissing,
    find_spark,
    local_command,
    local_environment,
)

HERE = SparkHere(Path("/spark"), Path("/jvm/bin/java"))
SCRIPT = ["s3://artifacts/v1/compact_partitions.py", "--run", "s3://lake/state/runs/r/"]


@pytest.fixture(autouse=True)
def no_master_chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(MASTER_VARIABLE, raising=False)
    find_spark.cache_clear()
    yield
    find_spark.cache_clear()


def command(*options: str) -> list[str]:
    return local_command(["spark-submit", *options, *SCRIPT], HERE)


def confs(words: list[str]) -> dict[str, str]:
    values = [words[at + 1] for at, word in enumerate(words) if word == "--conf"]
    return dict(value.split("=", 1) for value in values)


def test_the_script_of_this_checkout_runs_with_the_steps_own_arguments() -> None:
    words = command()
    script = str(spark_script())
    assert words[0] == "/spark/bin/spark-submit"
    assert words[-3:] == [script, "--run", "s3://lake/state/runs/r/"]


@pytest.mark.parametrize(
    "options",
    [
        ("--deploy-mode", "cluster", "--master", "yarn"),
        ("--deploy-mode=cluster", "--master=yarn"),
        ("--archives", "s3://a/deps.zip#deps", "--py-files", "s3://a/app.zip"),
        ("--archives=s3://a/deps.zip#deps", "--py-files=s3://a/app.zip"),
    ],
)
def test_what_only_a_cluster_has_is_left_out(options: tuple[str, ...]) -> None:
    assert command(*options) == command()


def test_the_master_has_a_thread_for_each_processor_and_tries_tasks_again() -> None:
    words = command("--master", "yarn")
    assert words.count("--master") == 1
    assert words[words.index("--master") + 1] == f"local[{os.cpu_count()},4]"


def test_the_environment_may_choose_another_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MASTER_VARIABLE, "local-cluster[2,1,1024]")
    assert command("--master", "yarn")[1:3] == ["--master", "local-cluster[2,1,1024]"]


def test_other_options_are_kept_as_they_are() -> None:
    words = command("--name", "a run", "--verbose", "-c", "spark.speculation=true")
    at = words.index("--name")
    assert words[at : at + 5] == ["--name", "a run", "--verbose", "-c", "spark.speculation=true"]


def test_settings_that_do_not_belong_to_a_cluster_are_kept() -> None:
    kept = {
        "spark.driver.maxResultSize": "0",
        "spark.driver.memory": "4g",
        "spark.speculation": "true",
        "spark.task.maxFailures": "4",
    }
    words = command(
        *(word for name, value in kept.items() for word in ("--conf", f"{name}={value}"))
    )
    assert kept.items() <= confs(words).items()


@pytest.mark.parametrize(
    "name",
    [
        "spark.executor.memory",
        "spark.executor.cores",
        "spark.executor.memoryOverhead",
        "spark.driver.memoryOverhead",
        "spark.driver.cores",
        "spark.dynamicAllocation.enabled",
        "spark.yarn.maxAppAttempts",
        "spark.yarn.appMasterEnv.PYTHONPATH",
        "spark.emr-serverless.driverEnv.PYTHONPATH",
    ],
)
def test_sizes_and_environments_of_a_cluster_are_left_out(name: str) -> None:
    assert name not in confs(command("--conf", f"{name}=1"))


def test_executors_import_from_the_checkout_instead_of_the_jars() -> None:
    words = command("--conf", "spark.executorEnv.PYTHONPATH=./deps")
    roots = confs(words)["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert roots == list(import_roots())
    assert "./deps" not in " ".join(words)


def test_a_script_that_does_not_lie_on_s3_stays_as_it_is() -> None:
    assert local_command(["spark-submit", "own.py", "--run", "x"], HERE)[-3] == "own.py"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hadoop", "fs"], "does not run spark-submit"),
        (["spark-submit"], "no script"),
        (["spark-submit", "--conf", "a=b"], "no script"),
        (["spark-submit", "--conf"], "--conf has no value"),
    ],
)
def test_arguments_that_are_not_spark_submits_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        local_command(arguments, HERE)


def test_the_job_gets_the_engines_transport_to_s3_and_this_python() -> None:
    base = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_PROFILE": "", "SPARK_HOME": "/old"}
    found = local_environment(base, HERE)
    assert found["AWS_ENDPOINT_URL_S3"] == "http://127.0.0.1:1"
    assert "AWS_PROFILE" not in found
    assert (found["SPARK_HOME"], found["JAVA_HOME"]) == ("/spark", "/jvm")
    assert found["PYSPARK_PYTHON"] == found["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert found["PYTHONPATH"].split(os.pathsep) == list(import_roots())


# Whether Spark is here.


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a pyspark and a Java, both found and neither real."""
    for name in ("pyspark/__init__.py", "pyspark/bin/spark-submit", "jvm/bin/java"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    origin = str(tmp_path / "pyspark" / "__init__.py")
    spec = importlib.machinery.ModuleSpec("pyspark", None, origin=origin)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jvm"))
    java(tmp_path, 'openjdk version "17.0.15" 2025-04-15')
    return tmp_path


def java(machine: Path, told: str) -> None:
    program = machine / "jvm" / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{told}' >&2\n", encoding="ascii")
    program.chmod(0o755)


@pytest.mark.parametrize("told", ['openjdk version "17.0.15" 2025-04-15', 'java version "21"'])
def test_spark_is_here_with_pyspark_and_a_new_enough_java(machine: Path, told: str) -> None:
    java(machine, told)
    assert find_spark() == SparkHere(machine / "pyspark", machine / "jvm" / "bin" / "java")


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ('java version "1.8.0_292"', "Java 8 found, but Spark runs on 17 and 21"),
        ('openjdk version "11.0.2" 2019-01-15', "Java 11 found, but Spark runs on 17 and 21"),
        ('openjdk version "25.0.1" 2025-10-21', "Java 25 found, but Spark runs on 17 and 21"),
        ("what is a version?", "cannot determine the version"),
    ],
)
def test_an_old_java_is_reported_with_what_to_install(machine: Path, told: str, what: str) -> None:
    java(machine, told)
    with pytest.raises(SparkMissing, match=rf"{what}.*: install pyspark .*Java 17"):
        find_spark()


def test_no_java_is_reported_with_where_it_was_looked_for(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(machine / "elsewhere"))
    with pytest.raises(SparkMissing, match=r"no Java in JAVA_HOME \(.*elsewhere\): install"):
        find_spark()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(machine))
    with pytest.raises(SparkMissing, match="no Java on PATH: install"):
        find_spark()


def test_no_pyspark_is_reported_with_what_to_install(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        SparkMissing, match=r"no pyspark here: .*pip install 's3-compactor\[spark\]'"
    ):
        find_spark()


def test_a_pyspark_without_spark_submit_does_not_count(machine: Path) -> None:
    (machine / "pyspark" / "bin" / "spark-submit").unlink()
    with pytest.raises(SparkMissing, match="no spark-submit"):
        find_spark()
