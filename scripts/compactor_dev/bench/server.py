"""Runs a front that adds latency to the embedded S3."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from compactor.errors import TransientStoreError
from compactor_cli.machine.child import python_environment
from compactor_dev import IMPORT_ROOTS
from compactor_dev.bench import certificate
from compactor_dev.bench.front import Requests, requests_of
from compactor_local.embedded import EmbeddedS3

LATENCY_MS = 25.0
# Age of sources that have settled, in a closed partition.
AGE_SECONDS = 30 * 86_400
# The front logs a response after sending it, which may be later than the client's receipt.
_LATE_SECONDS = 0.1


class Lane(NamedTuple):
    """A connection type of the server.

    Attributes:
        name: its name in results.
        tls: whether it uses TLS, with the front's certificate.
    """

    name: str
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """A running front.

    Attributes:
        plain: the lane without TLS.
        over_tls: the lane with it.
        endpoints: URL of each lane.
        trust: variables that make clients trust its certificate.
    """

    plain: Lane
    over_tls: Lane
    endpoints: Mapping[Lane, str]
    trust: Mapping[str, str]
    log: Path

    def environment(self, embedded: EmbeddedS3, lane: Lane) -> dict[str, str]:
        """Return the environment of a candidate that reads through a lane."""
        own = {"AWS_ENDPOINT_URL_S3": self.endpoints[lane], **(self.trust if lane.tls else {})}
        return environment({**embedded.environment, **own})

    @contextlib.contextmanager
    def counted(self) -> Iterator[list[Requests]]:
        """Count the requests within the block; the list has them afterwards."""
        found: list[Requests] = []
        before = self.log.stat().st_size
        yield found
        time.sleep(_LATE_SECONDS)
        with self.log.open(encoding="utf-8") as log:
            log.seek(before)
            found.append(requests_of(log.read().splitlines()))


def environment(more: Mapping[str, str], paths: Sequence[str] = IMPORT_ROOTS) -> dict[str, str]:
    """Return the environment of a benchmark process: this one's, extended."""
    base = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "", **more}
    return python_environment(base, *paths)


@contextlib.contextmanager
def front(
    embedded: EmbeddedS3, directory: Path, buckets: Sequence[str], latency_ms: float = LATENCY_MS
) -> Iterator[Front]:
    """Run a front within the block.

    Args:
        embedded: the S3 upstream.
        directory: for its log and its certificate.
        buckets: served from memory; must not change.
        latency_ms: delay before each response.

    Raises:
        TransientStoreError: it did not start.
    """
    directory.mkdir(parents=True, exist_ok=True)
    trust = certificate.make(directory).trust
    log = directory / "requests.log"
    words = [embedded.endpoint_url, f"{latency_ms:g}", str(log), str(directory), *buckets]
    process = subprocess.Popen(
        [sys.executable, "-m", "compactor_dev.bench.front", *words],
        env=environment(embedded.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A terminal's interrupt must reach the candidates first.
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        line = process.stdout.readline()
        if not line:
            raise TransientStoreError("the front did not start; see its output above")
        plain, tls = json.loads(line)
        name = f"{latency_ms:g} ms"
        lanes = (Lane(name), Lane(f"{name}, TLS", tls=True))
        urls = (f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{tls}")
        try:
            yield Front(*lanes, dict(zip(lanes, urls, strict=True)), trust, log)
        finally:
            process.kill()


def listed(client: Any, bucket: str, prefix: str = "") -> list[tuple[str, int]]:
    """Return keys and sizes of all objects below a prefix."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [(one["Key"], int(one["Size"])) for page in pages for one in page.get("Contents", ())]


def clear(client: Any, bucket: str) -> None:
    """Delete all objects of a bucket."""
    keys = [{"Key": key} for key, _ in listed(client, bucket)]
    for start in range(0, len(keys), 1_000):
        client.delete_objects(Bucket=bucket, Delete={"Objects": keys[start : start + 1_000]})
