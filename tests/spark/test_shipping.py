"""The job on machines that have nothing but Python, Spark and what the bundle ships."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compactor_bundling.bundles import (
    BundleError,
    Machine,
    SparkBundle,
    build_spark_bundle,
    submit_arguments,
)
from compactor_cli.machine.spark_submit import SparkHere
from compactor_local.embedded import EmbeddedS3
from tests.spark.cluster import Cluster
from tests.spark.job import Ended, Job

pytestmark = pytest.mark.slow

# Without the site module a Python finds nothing but its standard library.
BARE = [sys.executable, "-S", "-I"]
HERE = Machine(
    "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64",
    f"3.{sys.version_info.minor}",
)
# How uv starts what it tells when it could not reach the package registry.
UNREACHABLE = ("error sending request", "Network connectivity is disabled", "operation timed out")


def built(out: Path, environment: dict[str, str]) -> SparkBundle:
    """A bundle for this machine, from what uv has in its cache, or else from the registry."""
    told = ""
    for offline in ("1", ""):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**environment, "UV_OFFLINE": offline}.items():
                if value:
                    patch.setenv(name, value)
                else:
                    patch.delenv(name, raising=False)
            try:
                return build_spark_bundle(out, HERE)
            except BundleError as error:
                told = str(error)
    if any(sign in told for sign in UNREACHABLE):
        pytest.skip(f"the package registry is out of reach: {told}")
    raise AssertionError(told)


@pytest.fixture(scope="module")
def bundle(
    tmp_path_factory: pytest.TempPathFactory, registry_environment: dict[str, str]
) -> SparkBundle:
    return built(tmp_path_factory.mktemp("bundle"), registry_environment)


@pytest.fixture(scope="module")
def unpacked(bundle: SparkBundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of a container, where the libraries are unpacked as deps."""
    directory = tmp_path_factory.mktemp("container")
    with zipfile.ZipFile(bundle.dependencies) as archive:
        archive.extractall(directory / "deps")
    return directory


def test_a_bundle_built_again_is_the_same_to_the_byte(
    bundle: SparkBundle, registry_environment: dict[str, str], tmp_path: Path
) -> None:
    again = built(tmp_path, registry_environment)
    for first, second in zip(bundle.paths, again.paths, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_an_archive_of_libraries_has_nothing_of_the_machine_that_built_it(
    bundle: SparkBundle,
) -> None:
    with zipfile.ZipFile(bundle.dependencies) as archive:
        names = archive.namelist()
        here = str(Path(sys.prefix)).encode()
        assert [name for name in names if here in archive.read(name)] == []
    top = {name.split("/")[0] for name in names}
    assert {"botocore", "isal", "msgspec", "pyarrow", "pycurl", "zlib_ng", "zstandard"} <= top
    assert not top & {"bin", ".lock", "rich", "smart_open", "aws_lambda_powertools", "pygments"}
    assert not {name.rpartition("/")[2] for name in names} & {"RECORD", "INSTALLER", "REQUESTED"}


COMPACT = """
import json, sys, time
deps, app, given = sys.argv[1:]
sys.path[:0] = [deps, app]
import botocore, isal, msgspec, pyarrow, pycurl, zlib_ng, zstandard
import compactor.partition.run as core
from compactor.model import Partition
from compactor.partition.receipts import Counts
from compactor.settings.settings import Settings
from compactor.s3.store import S3Store, make_client

class Now:
    now = staticmethod(time.time)
    remaining_seconds = staticmethod(lambda: 1e9)

settings = Settings.from_input(json.loads(given))
root = settings.source.root
partition = Partition(root.bucket, root.prefix + "a/", "a/")
run = core.PartitionRun(partition, settings, S3Store(make_client()), Now(), Now(), "run-bare")
receipt = core.compact_partition(run, Counts())
modules = (botocore, isal, msgspec, pyarrow, pycurl, zlib_ng, zstandard, core)
print(json.dumps([receipt.status, receipt.counts.objects_in, [m.__file__ for m in modules]]))
"""


def environment_of(s3: EmbeddedS3) -> dict[str, str]:
    both = {**os.environ, **s3.environment}
    return {name: value for name, value in both.items() if value and name != "PYTHONPATH"}


def sources() -> dict[str, bytes]:
    return {f"a/{n}.json": b'{"id": "record-%d"}\n' % n for n in range(5)}


def test_a_bare_python_compacts_with_what_the_bundle_holds(
    bundle: SparkBundle, unpacked: Path, s3: EmbeddedS3
) -> None:
    job = Job(s3, "")
    job.seed(sources())
    given = json.dumps({**job.settings.to_dict(), "engine": "worker"})
    ended = subprocess.run(
        [*BARE, "-c", COMPACT, str(unpacked / "deps"), str(bundle.application), given],
        env=environment_of(s3),
        cwd=unpacked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    status, objects, paths = json.loads(ended.stdout)
    assert (status, objects) == ("done", 5)
    assert all(path.startswith(f"{unpacked}/deps/") for path in paths[:-1])
    assert paths[-1] == f"{bundle.application}/compactor/partition/run.py"
    assert sorted(job.readable()) == [0, 1, 2, 3, 4]


@dataclass
class Shipped(Job):
    """The job as a cluster starts it: the driver in a container of its own."""

    def submit(self, bundle: SparkBundle, container: Path, python: Path, spark: SparkHere) -> Ended:
        shipped = submit_arguments(str(bundle.dependencies), str(bundle.application))
        environment = environment_of(self.s3) | {
            "JAVA_HOME": str(spark.java.resolve().parents[1]),
            # As spark.yarn.appMasterEnv.PYTHONPATH sets it, which nothing but YARN reads.
            "PYTHONPATH": "./deps",
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [str(spark.spark_submit), "--master", self.master, *shipped]
        command += ["--conf", "spark.ui.enabled=false"]
        process = subprocess.Popen(
            [*command, str(bundle.script), "--run", self.place],
            env=environment,
            cwd=container,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return self.wait(process)


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A program that is Python without any package; PYTHONPATH still counts."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["pycurl", "botocore", "msgspec", "compactor", "spark", "pyspark"])
def test_a_bare_python_has_none_of_it(name: str, bare_python: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(bare_python), "-c", f"import {name}"]
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"No module named '{name}'" in ended.stderr


def test_executors_run_the_job_from_what_is_shipped_to_them(
    bundle: SparkBundle, unpacked: Path, bare_python: Path, spark_here: SparkHere, s3: EmbeddedS3,
    two_executors: Cluster, tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    job = Shipped(s3, two_executors.url, given={"output_format": "parquet"})
    job.seed(sources())
    job.discover()
    ended = job.submit(bundle, unpacked, bare_python, spark_here)
    assert ended.code == 0, ended.log[-4000:]
    (output,) = job.outputs().values()
    rows = pq.read_table(io.BytesIO(output))
    assert sorted(rows["id"].to_pylist()) == [f"record-{n}" for n in range(5)]
    executors = tmp_path_factory.getbasetemp().glob("cluster*/*/app-*/*")
    assert any((directory / "deps" / "pycurl").is_dir() for directory in executors)
