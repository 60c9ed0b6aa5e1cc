"""The Spark job of a deployment that merges into a table, on this machine: what it asks of AWS.

Iceberg's own GlueCatalog and S3FileIO, and Spark's own reads of S3, as on EMR; the server is moto.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor.discovery.discover import discover
from compactor.discovery.work_list import leave_to_spark, write_work
from compactor.probe.probe import traits_for
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.machine.installed import spark_script
from compactor_cli.machine.spark_submit import find_spark
from compactor_dev import IMPORT_ROOTS
from compactor_local.definition import REGION
from compactor_local.embedded import SeedObject
from tests.infrastructure.cloud.running import Cloud
from tests.support.java import SHORT_LIVED
from tests.support.server_builds import table_jars

#: The access key of what the job sends.
SPARK_JOB = "spark-job"
_LONG_AGO_SECONDS = 9 * 86_400
_RUN_SECONDS = 600
_LAST_CHARACTERS = 4_000


def merge(
    on: Cloud,
    settings: Settings,
    run_id: str,
    records: Sequence[Mapping[str, Any]],
    conf: Mapping[str, str] | None = None,
    below: str = "",
) -> dict[str, Any]:
    """Let one object with these records arrive, and run the job over all there is.

    Args:
        on: where buckets and the database are.
        settings: of the run.
        run_id: of the run.
        records: of the object.
        conf: settings of Spark, in place of those that bring the archives.
        below: the prefix, below that of the source, where the object arrives.

    Returns:
        What the job left about the run: of its result, or its error.
    """
    root = settings.source.root
    body = b"".join(json.dumps(one).encode() + b"\n" for one in records)
    seeds = [
        SeedObject(f"{root.prefix}{below}{run_id}.json", body, time.time() - _LONG_AGO_SECONDS)
    ]
    on.seed(root.bucket, seeds)
    store = S3Store(make_client(on.endpoint_url))
    traits_for(settings.state, store, time.time())
    found = discover(settings, store, time.time())
    write_work(found, settings, run_id, store)
    for partition in found.partitions:
        leave_to_spark(settings, run_id, partition, store)
    bucket, place = settings.layout.run(run_id)
    # A pattern, as that of a release is.
    jars = {"spark.jars": f"{table_jars()[0].parent}/*.jar"} if conf is None else conf
    command = [
        *(str(find_spark().spark_submit), "--master", "local[2]"),
        *_options({**_conf(on), **jars}),
        *(str(spark_script()), "--run", f"s3://{bucket}/{place}"),
    ]
    done = subprocess.run(
        command,
        env=_environment(on),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_RUN_SECONDS,
    )
    left = f"{place}spark-{'error' if done.returncode else 'result'}.json"
    assert store.head(bucket, left) is not None, done.stdout[-_LAST_CHARACTERS:]
    result: dict[str, Any] = json.loads(store.get(bucket, left))
    return result


def _options(conf: Mapping[str, str]) -> Iterator[str]:
    for name, value in conf.items():
        yield from ("--conf", f"{name}={value}")


def _conf(on: Cloud) -> dict[str, str]:
    return {
        "spark.compactor.access": "s3a",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.hadoop.fs.s3a.endpoint": on.endpoint_url,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": SPARK_JOB,
        "spark.hadoop.fs.s3a.secret.key": SPARK_JOB,
        "spark.ui.enabled": "false",
    }


def _environment(on: Cloud) -> dict[str, str]:
    given = {**os.environ, **on.environment}
    return {name: value for name, value in given.items() if value} | {
        "AWS_ACCESS_KEY_ID": SPARK_JOB,
        "AWS_SECRET_ACCESS_KEY": SPARK_JOB,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": on.endpoint_url,
        "AWS_ENDPOINT_URL_S3": on.endpoint_url,
        "AWS_ENDPOINT_URL_GLUE": on.endpoint_url,
        "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def rows_of(on: Cloud, name: str) -> list[dict[str, Any]]:
    """The rows of a table of Glue's catalog, by a library that has not written them."""
    from pyiceberg.catalog import load_catalog

    found = load_catalog(
        "compactor",
        **{
            "type": "glue",
            "glue.endpoint": on.endpoint_url,
            "glue.region": REGION,
            "glue.access-key-id": "nobody",
            "glue.secret-access-key": "nobody",
            "s3.endpoint": on.endpoint_url,
            "s3.access-key-id": "nobody",
            "s3.secret-access-key": "nobody",
        },
    ).load_table(name)
    return list(found.scan().to_arrow().to_pylist())


def location_of(on: Cloud, name: str) -> str:
    """Where a table of Glue's catalog lies."""
    database, table = name.split(".")
    found = on.client("glue").get_table(DatabaseName=database, Name=table)
    return str(found["Table"]["StorageDescriptor"]["Location"])
