"""Input of the demonstration: generated logs, or a directory of real ones."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from compactor.encoding.codecs import beginning
from compactor.errors import InvalidInput, UnreadableSource
from compactor.scanning.layouts import choose
from compactor.scanning.proposals import MOST_SAMPLED, RANGE_BYTES, Head, propose_formats
from compactor_local.embedded import SeedObject
from compactor_local.generate import KINDS, generate

BUCKET = "demo"
SOURCE_URI = f"s3://{BUCKET}/logs/"
DESTINATION_URI = f"s3://{BUCKET}/compacted/"
SOURCE_PREFIX = "logs/"

_DAYS, _RECORDS = 3, 25
# With these days, all objects have settled.
_DAYS_AGO = 8
_DAY_SECONDS = 86_400
# The embedded S3 holds everything in memory.
_MOST_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Seed:
    """Input objects, and the matching fields of the run's input."""

    objects: Iterable[SeedObject]
    count: int
    fields: dict[str, Any] = field(default_factory=dict)


def generated(count: int) -> Seed:
    """Return generated objects of three days, each kind below its own prefix.

    Raises:
        InvalidInput: the number of objects is out of range.
    """
    if count < 1:
        raise InvalidInput("--objects", count, "a number from 1 on")
    start = datetime.now(UTC).date() - timedelta(days=_DAYS_AGO)
    fields = {
        "s3_source_uri": SOURCE_URI + "*/",
        "date_format": "%Y/%m/%d",
        "window": f"{start}..",
        "formats": [{"match": "*.csv", "format": "csv", "header": True}],
    }
    seeds = (
        SeedObject(SOURCE_PREFIX + one.key, one.content, one.last_modified)
        for one in generate(count, _RECORDS, kinds=KINDS, start=start, days=_DAYS)
    )
    return Seed(seeds, count, fields)


def from_directory(directory: Path) -> Seed:
    """Return the logs in a directory, with relative paths as keys. Files are only read.

    Raises:
        InvalidInput: it is not a directory, empty, or larger than 2 GiB.
    """
    if not directory.is_dir():
        raise InvalidInput("--source", str(directory), "a directory of logs")
    paths = sorted(_walk(directory))
    size = sum(path.stat().st_size for path in paths)
    if not paths:
        raise InvalidInput("--source", str(directory), "a directory with logs in it")
    if size > _MOST_BYTES:
        limit = f"at most {_MOST_BYTES:,} bytes of logs, as the embedded S3 is in memory"
        raise InvalidInput("--source", str(directory), f"{limit} (there are {size:,})")
    keys = (_key(path, directory) for path in paths)
    directories = Counter(key[: key.rfind("/") + 1] for key in keys)
    fields = fields_of(directories)
    root = directory / fields["s3_source_uri"].partition("*")[0].removeprefix(SOURCE_URI)
    step = -(-len(paths) // MOST_SAMPLED)
    heads = [_head(path, root) for path in paths[::step] if path.is_relative_to(root)]
    declared = [one.to_dict() for each in propose_formats(heads, ()) for one in each.declared]
    fields |= {"formats": declared} if declared else {}
    return Seed(_read(paths, directory), len(paths), fields)


def fields_of(directories: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a run's input for the layout of keys: by dates, or one partition.

    Args:
        directories: number of objects by directory.
    """
    layout, *others = choose(directories, SOURCE_PREFIX)
    if layout.date_format is None or others:
        return {"s3_source_uri": SOURCE_URI}
    levels = "".join(f"{level}/" for level in (*layout.root, *layout.pattern))
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (layout.begin, layout.end - 1))
    return {
        "s3_source_uri": SOURCE_URI + levels,
        "date_format": layout.date_format,
        "window": f"{first}..{last}",
    }


def _head(path: Path, root: Path) -> Head:
    relative = path.relative_to(root).as_posix()
    with path.open("rb") as file:
        stored = file.read(RANGE_BYTES)
    try:
        return Head(relative, *beginning(stored, complete=len(stored) == path.stat().st_size))
    except UnreadableSource as error:
        return Head(relative, fault=error.reason)


def _key(path: Path, directory: Path) -> str:
    return SOURCE_PREFIX + path.relative_to(directory).as_posix()


def _walk(directory: Path) -> Iterator[Path]:
    for parent, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _read(paths: Iterable[Path], directory: Path) -> Iterator[SeedObject]:
    day_ago = time.time() - _DAY_SECONDS
    for path in paths:
        yield SeedObject(
            _key(path, directory), path.read_bytes(), min(path.stat().st_mtime, day_ago)
        )
