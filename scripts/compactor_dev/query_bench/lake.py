"""The lake that is queried: the embedded S3 with every layout in it, and nginx before it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor.errors import TransientStoreError
from compactor_cli.local.child import python_environment
from compactor_cli.local.embedded import EmbeddedS3, SeedObject, embedded_s3
from compactor_dev import IMPORT_ROOTS
from compactor_dev.benchmark.front import Lane, front
from compactor_dev.benchmark.tools import Tools
from compactor_dev.query_bench.catalog import DATABASE, put_tables, table_name
from compactor_dev.query_bench.layouts import CLOSED_DAYS, RAW_BUCKET, Layout, to_make
from compactor_dev.query_bench.sets import DAYS, Answers, QuerySet, day_path, day_value, seeded
from compactor_dev.trino.server import Places

_WARMING_THREADS = 16
_LAST_WORDS = 300
_ONE_IN_LATE = 40


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
    *,
    tables: bool = False,
) -> Filled:
    """Store a set, and make its layouts by runs.

    Args:
        embedded: where.
        given: the set.
        layouts: those that are wanted.
        log: receives what runs print.
        on_step: told what comes next.
        tables: a table of the embedded Glue for each layout, too. What a table of several states
            shows was compacted while a few sources were still to come.

    Raises:
        TransientStoreError: a run failed; says what it printed last.
    """
    filled = Filled(given)
    on_step(f"{given.name}: storing")
    exact = [one for one in layouts if tables and one.of is not None]
    late: list[SeedObject] = []
    sources = seeded(given, filled.answers, time.time())
    embedded.seed(RAW_BUCKET, _early(given, sources, late) if exact else sources)
    for layout in exact:
        on_step(f"{given.name}: {layout.name}")
        embedded.create_bucket(layout.bucket)
        _run(embedded, log, ["run", *_words(given, layout, _dated(CLOSED_DAYS))])
    embedded.seed(RAW_BUCKET, late)
    filled.outputs["raw"] = filled.answers.objects
    filled.stored["raw"] = filled.answers.stored_bytes
    for layout in to_make(layouts):
        on_step(f"{given.name}: {layout.name}")
        embedded.create_bucket(layout.bucket)
        started = time.monotonic()
        options = {"--depth": "1", **(layout.options or {}), **given.options}
        _run(embedded, log, ["run", *_words(given, layout, options)])
        filled.seconds[layout.name] = time.monotonic() - started
        sizes = [size for _, size in _listed(embedded, layout.bucket, f"data/{given.name}/")]
        filled.outputs[layout.name], filled.stored[layout.name] = len(sizes), sum(sizes)
    if tables:
        put_tables(embedded, given, [one for one in layouts if one.of is None])
    for layout in exact:
        named = {"--reader-table": f"glue:{DATABASE}.{table_name(given, layout)}"}
        words = _words(given, layout, {**_dated(DAYS), **named})
        _run(embedded, log, ["table", "refresh", *words])
    return filled


def _early(
    given: QuerySet, sources: Iterator[SeedObject], late: list[SeedObject]
) -> Iterator[SeedObject]:
    """Without some sources of the last day that is compacted, which are put to ``late``."""
    last = f"{given.name}/{day_path(CLOSED_DAYS - 1)}"
    for number, one in enumerate(sources):
        if one.key.startswith(last) and number % _ONE_IN_LATE == 0:
            late.append(one)
        else:
            yield one


def _dated(days: int) -> dict[str, str]:
    """Options that make partitions of the first days."""
    return {
        "--date-format": "dt=%Y-%m-%d",
        "--start": day_value(0),
        "--end": day_value(days - 1),
        "--compression": "same",
    }


def _words(given: QuerySet, layout: Layout, options: Mapping[str, str]) -> list[str]:
    places = [f"s3://{RAW_BUCKET}/{given.name}/", f"s3://{layout.bucket}/data/{given.name}/"]
    return places + [word for pair in options.items() for word in pair]


def _run(embedded: EmbeddedS3, log: Path, words: Sequence[str]) -> None:
    base = {**os.environ, **embedded.environment}
    environment = python_environment(
        {name: value for name, value in base.items() if value}, *IMPORT_ROOTS
    )
    endpoint = ("--endpoint-url", embedded.endpoint_url)
    with log.open("ab") as sink:
        done = subprocess.run(
            [sys.executable, "-m", "compactor_cli", *words, *endpoint],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            check=False,
        )
    if done.returncode:
        said = " ".join(log.read_text("utf-8", "replace").split())[-_LAST_WORDS:]
        raise TransientStoreError(f"compactor {' '.join(words)} failed: {said}")


def _listed(embedded: EmbeddedS3, bucket: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    client: Any = embedded.client("s3")
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            yield entry["Key"], int(entry["Size"])


@dataclass(frozen=True, slots=True)
class Lake:
    """What engines read.

    Attributes:
        places: the S3, with latency, and the Glue, without.
        log: of the requests there.
        filled: the sets in it.
    """

    places: Places
    log: Path
    filled: Sequence[Filled]


@dataclass(frozen=True, slots=True)
class Place:
    """Where and with what a lake is made.

    Attributes:
        tools: nginx among them.
        directory: for both servers.
        latency_ms: to the first byte of each answer.
        tables: the layouts are tables of a Glue, too.
    """

    tools: Tools
    directory: Path
    latency_ms: float
    tables: bool = False


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
    made = to_make(layouts)
    if place.tables:
        made += [one for one in layouts if one.of is not None]
    buckets = [RAW_BUCKET, *(one.bucket for one in made)]
    with (
        (directory / "embedded.log").open("wb") as log,
        embedded_s3(log, lake=place.tables) as embedded,
    ):
        if place.tables:
            embedded.client("glue").create_database(DatabaseInput={"Name": DATABASE})
        runs = directory / "runs.log"
        runs.unlink(missing_ok=True)
        filled = [fill(embedded, one, layouts, runs, on_step, tables=place.tables) for one in sets]
        upstream = embedded.endpoint_url.removeprefix("http://")
        lanes = list(dict.fromkeys((slow, fast)))
        nginx = directory / "nginx"
        with front(place.tools, nginx, upstream, lanes, buckets, logged=True) as running:
            on_step("warming the cache")
            for bucket in buckets:
                keys = [key for key, _ in _listed(embedded, bucket)]
                _warm(running.endpoints[fast], bucket, keys)
            places = Places(running.endpoints[slow], embedded.endpoint_url)
            yield Lake(places, running.log, filled)


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
