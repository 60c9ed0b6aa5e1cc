"""Small builders, so that a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from compactor.discovery.speed import LINES, SPEEDS
from compactor.limits import USUAL, WorkerLimits
from compactor.model import Listing, Partition, SourceObject
from compactor.settings.settings import Settings

#: Levels of JSON that no interpreter goes: 3.11 has 1,000, and Lambda's 3.14 what its stack holds.
TOO_DEEP = 1_000_000
NOW = 1_800_000_000.0
LONG_AGO = NOW - 30 * 86_400
PARTITION = Partition("source", "logs/2026/01/02/", "2026/01/02/")


def settings(**given: Any) -> Settings:
    """Settings with defaults, for ``s3://source/logs/`` to ``s3://lake/compacted/``."""
    uris = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}
    return limited({**uris, **given})


def limited(given: Mapping[str, Any]) -> Settings:
    """Settings of an input in which single limits of a worker may stand, or all as ``limits``."""
    single = {one.name: given[one.name] for one in fields(WorkerLimits) if one.name in given}
    limits: WorkerLimits = replace(given.get("limits", USUAL), **single)
    asked = {name: value for name, value in given.items() if name not in {"limits", *single}}
    return replace(Settings.from_input(asked), limits=limits)


def seconds_of(objects: float) -> float:
    """What a worker is estimated to take for so many tiny plain objects."""
    return SPEEDS[LINES].per_million_objects * objects / 1e6


def source(
    name: str, size: int = 100, age_seconds: float = 30 * 86_400, **given: Any
) -> SourceObject:
    """A source object of the example partition."""
    return SourceObject(
        bucket="source",
        key=f"{PARTITION.prefix}{name}",
        etag=given.pop("etag", f"etag-of-{name}"),
        size=size,
        last_modified=NOW - age_seconds,
        **given,
    )


def listing(*objects: SourceObject, complete: bool = True) -> Listing:
    """A listing of the example partition."""
    newest = max((one.last_modified for one in objects), default=0.0)
    return Listing(PARTITION, tuple(objects), newest=newest, complete=complete)
