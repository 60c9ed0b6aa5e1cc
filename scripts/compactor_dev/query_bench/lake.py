"""The lake that is queried: the embedded S3 with every layout in it, and nginx before it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor.errors import TransientStoreError
from compactor_cli.local.child import python_environment
from compactor_cli.local.embedded import EmbeddedS3, embedded_s3
from compactor_dev import IMPORT_ROOTS
from compactor_dev.benchmark.front import Lane, front
from compactor_dev.benchmark.tools import Tools
from compactor_dev.query_bench.layouts import RAW_BUCKET, Layout, to_make
from compactor_dev.query_bench.sets import Answers, QuerySet, seeded

_WARMING_THREADS = 16
_LAST_WORDS = 300


@dataclass(slots=True)
class Filled:
    """One set in all its layouts.

    Attributes:
        given: the set.
        answers: of its queries.
        seconds: that the run which made a layout took, by the layout's name.
        outputs: objects of a layout.
        stored: their bytes.
    """

    given: QuerySet
    answers: Answers = field(default_factory=Answers)
    seconds: dict[str, float] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)


def fill(
    embedded: EmbeddedS3,
    given: QuerySet,
    layouts: Sequence[Layout],
    log: Path,
    on_step: Callable[[str], None] = lambda text: None,
) -> Filled:
    """Store a set, and make its layouts by runs.

    Raises:
        TransientStoreError: a run failed; says what it printed last.
    """
    filled = Filled(given)
    on_step(f"{given.name}: storing")
    embedded.seed(RAW_BUCKET, seeded(given, filled.answers, time.time()))
    filled.outputs["raw"] = filled.answers.objects
    filled.stored["raw"] = filled.answers.stored_bytes
    for layout in to_make(layouts):
        on_step(f"{given.name}: {layout.name}")
        embedded.create_bucket(layout.bucket)
        started = time.monotonic()
        _run(embedded, given, layout, log)
        filled.seconds[layout.name] = time.monotonic() - started
        sizes = [size for _, size in _listed(embedded, layout.bucket, f"data/{given.name}/")]
        filled.outputs[layout.name], filled.stored[layout.name] = len(sizes), sum(sizes)
    return filled


def _run(embedded: EmbeddedS3, given: QuerySet, layout: Layout, log: Path) -> None:
    words = [f"s3://{RAW_BUCKET}/{given.name}/", f"s3://{layout.bucket}/data/{given.name}/"]
    options = {"--depth": "1", "--endpoint-url": embedded.endpoint_url, **(layout.options or {})}
    words += [word for pair in options.items() for word in pair]
    base = {**os.environ, **embedded.environment}
    environment = python_environment(
        {name: value for name, value in base.items() if value}, *IMPORT_ROOTS
    )
    with log.open("ab") as sink:
        done = subprocess.run(
            [sys.executable, "-m", "compactor_cli", "run", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            check=False,
        )
    if done.returncode:
        said = " ".join(log.read_text("utf-8", "replace").split())[-_LAST_WORDS:]
        raise TransientStoreError(f"{given.name}, {layout.name}: the run failed: {said}")


def _listed(embedded: EmbeddedS3, bucket: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    client: Any = embedded.client("s3")
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            yield entry["Key"], int(entry["Size"])


@dataclass(frozen=True, slots=True)
class Lake:
    """What engines read.

    Attributes:
        endpoint_url: of the S3, with latency.
        log: of the requests there.
        filled: the sets in it.
    """

    endpoint_url: str
    log: Path
    filled: Sequence[Filled]


@dataclass(frozen=True, slots=True)
class Place:
    """Where and with what a lake is made.

    Attributes:
        tools: nginx among them.
        directory: for both servers.
        latency_ms: to the first byte of each answer.
    """

    tools: Tools
    directory: Path
    latency_ms: float


@contextlib.contextmanager
def lake(
    sets: Sequence[QuerySet],
    layouts: Sequence[Layout],
    place: Place,
    on_step: Callable[[str], None] = lambda text: None,
) -> Iterator[Lake]:
    """Run both servers for the length of the block, with everything in the cache.

    Raises:
        EngineError: the embedded S3 did not start.
        TransientStoreError: nginx did not start, or a run failed.
    """
    directory = place.directory
    directory.mkdir(parents=True, exist_ok=True)
    slow, fast = Lane(place.latency_ms), Lane(0.0)
    buckets = [RAW_BUCKET, *(one.bucket for one in to_make(layouts))]
    with (directory / "embedded.log").open("wb") as log, embedded_s3(log) as embedded:
        runs = directory / "runs.log"
        runs.unlink(missing_ok=True)
        filled = [fill(embedded, one, layouts, runs, on_step) for one in sets]
        upstream = embedded.endpoint_url.removeprefix("http://")
        lanes = list(dict.fromkeys((slow, fast)))
        nginx = directory / "nginx"
        with front(place.tools, nginx, upstream, lanes, buckets, logged=True) as running:
            on_step("warming the cache")
            for bucket in buckets:
                keys = [key for key, _ in _listed(embedded, bucket)]
                _warm(running.endpoints[fast], bucket, keys)
            yield Lake(running.endpoints[slow], running.log, filled)


def _warm(endpoint_url: str, bucket: str, keys: Sequence[str]) -> None:
    import urllib3  # noqa: PLC0415 - its pool is of use here alone

    # The embedded S3 takes requests that nobody signed, and so does its cache.
    with (
        urllib3.PoolManager(maxsize=_WARMING_THREADS) as http,
        ThreadPoolExecutor(_WARMING_THREADS) as pool,
    ):

        def read(key: str) -> None:
            http.request("GET", f"{endpoint_url}/{bucket}/{key}")

        list(pool.map(read, keys))
