"""Small builders that let a test show only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from compactor.limits import USUAL, WorkerLimits
from compactor.model import Listing, Partition, SourceObject
from compactor.settings.settings import Settings

#: A JSON depth that no interpreter parses: 3.11 allows 1,000, Lambda's 3.14 what fits its stack.
TOO_DEEP = 1_000_000
NOW = 1_800_000_000.0
LONG_AGO = NOW - 30 * 86_400
PARTITION = Partition("source", "logs/2026/01/02/", "2026/01/02/")


class Looks:
    """A deadline that comes when it was looked at so often."""

    def __init__(self, looks: int) -> None:
        self._remaining = looks

    def remaining_seconds(self) -> float:
        self._remaining -= 1
        return 900.0 if self._remaining >= 0 else 10.0


def settings(**given: Any) -> Settings:
    """Return settings with defaults, from ``s3://source/logs/`` to ``s3://lake/compacted/``."""
    uris = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}
    declared = {} if {"format", "formats"} & given.keys() else {"formats": columns()}
    return limited({**uris, **declared, **given})


def columns(*, header: bool = True, **options: Any) -> list[dict[str, Any]]:
    """Return declarations of CSV and TSV, by their names."""
    return [
        {"match": f"*.{name}*", "format": name, "header": header, **options}
        for name in ("csv", "tsv")
    ]


#: CloudTrail's documents become lines; CSV is declared as by default.
ON_LINES = [{"match": "*CloudTrail*", "format": "cloudtrail_lines"}, *columns()]


def limited(given: Mapping[str, Any]) -> Settings:
    """Return settings from an input that may have single limits of a worker, or ``limits``."""
    single = {one.name: given[one.name] for one in fields(WorkerLimits) if one.name in given}
    limits: WorkerLimits = replace(given.get("limits", USUAL), **single)
    asked = {name: value for name, value in given.items() if name not in {"limits", *single}}
    return replace(Settings.from_input(asked), limits=limits)


def source(
    name: str, size: int = 100, age_seconds: float = 30 * 86_400, **given: Any
) -> SourceObject:
    """Return a source object of the example partition."""
    return SourceObject(
        bucket="source",
        key=f"{PARTITION.prefix}{name}",
        etag=given.pop("etag", f"etag-of-{name}"),
        size=size,
        last_modified=NOW - age_seconds,
        **given,
    )


def listing(*objects: SourceObject, complete: bool = True) -> Listing:
    """Return a listing of the example partition."""
    newest = max((one.last_modified for one in objects), default=0.0)
    return Listing(PARTITION, tuple(objects), newest=newest, complete=complete)
