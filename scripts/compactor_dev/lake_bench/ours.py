"""This project's way, under the same faults: events that come twice, runs that are killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.local.embedded import EmbeddedS3
from compactor_cli.local.executions import FAILED, Executions
from compactor_cli.local.ingest import Ingest, Stream
from compactor_cli.local.model import EngineError
from compactor_dev.lake_bench import one_run

_THRESHOLD_OBJECTS = 10
_THRESHOLD_SECONDS = 5
#: Between two sweeps.
SWEEP_SECONDS = 2.0
_LOOK_SECONDS = 0.5
# From its first request to the commit of the table.
_KILLED_AFTER_SECONDS = (2.0, 20.0)


def streams(bucket: str, prefix: str, writers: Sequence[str], table: str) -> list[Stream]:
    """One for each writer, all into the same table."""
    return [
        Stream(
            name=writer,
            input={
                "s3_source_uri": f"s3://{bucket}/{prefix}{writer}/",
                "s3_destination_uri": f"s3://{bucket}/compacted/{writer}/",
                "format": "parquet",
                "table": table,
                "settle_seconds": 0,
                "open_partition_seconds": 0,
            },
            objects=_THRESHOLD_OBJECTS,
            size=1 << 30,
            seconds=_THRESHOLD_SECONDS,
        )
        for writer in writers
    ]


class Ours:
    """Runs by events, each of which may be killed.

    Args:
        server: with a lake's services.
        kill_share: of the runs that are killed on their way; what they did not do comes again.
    """

    def __init__(self, server: EmbeddedS3, kill_share: float) -> None:
        self._server = server
        self._kill_share = kill_share
        self._drawn = random.Random(7)
        self.killed = 0
        self.executions = Executions(self._carry_out)

    def _carry_out(self, name: str, given: Mapping[str, Any]) -> None:
        lives = None
        if self._drawn.random() < self._kill_share:
            lives = self._drawn.uniform(*_KILLED_AFTER_SECONDS)
        run = subprocess.Popen(
            [
                sys.executable,
                "-m",
                one_run.__name__,
                name,
                self._server.endpoint_url,
                json.dumps(given),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            code = run.wait(lives)
        except subprocess.TimeoutExpired:
            run.kill()
            code = run.wait()
            self.killed += 1
        if code:
            raise EngineError(f"{name} ended with {code}")

    def drain(self, ingest: Ingest, written: threading.Event) -> None:
        """Return when all that was written is in the table."""
        while not written.is_set() or not ingest.is_at_rest(self.executions):
            ingest.check()
            time.sleep(_LOOK_SECONDS)

    def failed(self) -> int:
        """Runs that failed, the killed ones included."""
        return sum(one.status == FAILED for one in self.executions.all())


def conflicts(s3: Any, bucket: str) -> int:
    """Commits of the table that somebody else was first with, as the runs' receipts tell."""
    total = 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="_compactor/"):
        for one in page.get("Contents", []):
            if one["Key"].endswith("/table.json"):
                body = s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
                total += json.loads(body)["conflicts"]
    return total
