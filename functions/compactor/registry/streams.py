"""Streams, and which stream and partition a key belongs to.

The partition is the same one that discovery finds with LIST. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.registry.registry_ports import StreamIdentity
from compactor.settings.layout import longest_path
from compactor.settings.settings import Settings
from compactor.settings.windows import expand, matches, wildcards_of

#: Names of streams, which follow the table's name in a run's ``listing``.
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}"
NAME_ACCEPTED = "1 to 40 letters, digits, hyphens and underscores, the first a letter or digit"
_THRESHOLDS: Mapping[str, tuple[int, int]] = {
    "objects": (10_000, 100_000_000),
    "bytes": (1024**3, 1024**5),
    "seconds": (900, 366 * 86_400),
}
_FIELDS = ("name", "input", *_THRESHOLDS)
_DIRECTIVES = {"Y": r"(?P<Y>\d{4})", "m": r"(?P<m>\d\d)", "d": r"(?P<d>\d\d)"} | {
    "H": r"(?P<H>\d\d)",
    "j": r"(?P<j>\d{3})",
}


class PartitionScheme:
    """How the keys of a source name partitions.

    Args:
        settings: of a run over that source.
    """

    def __init__(self, settings: Settings) -> None:
        self._root = settings.source.root
        self._pattern = settings.source.pattern
        self._date_format = settings.date_format
        dates = 0 if settings.date_format is None else len(wildcards_of(settings.date_format))
        #: Number of levels below the source that name a partition.
        self.levels = len(self._pattern) + (dates or settings.depth)
        self._longest_path = longest_path(settings.destination, settings.state)
        self._dates = re.compile(_expression(settings.date_format or ""))

    @property
    def text(self) -> str:
        """A text that is equal for schemes with the same partitions."""
        return f"{'/'.join(self._pattern)}|{self._date_format}|{self.levels}"

    def partition(self, bucket: str, key: str) -> Partition | None:
        """Return the partition that a key is in; None if it is in none."""
        root = self._root
        if bucket != root.bucket or not key.startswith(root.prefix):
            return None
        segments = key[len(root.prefix) :].split("/")
        levels = segments[: self.levels]
        if len(segments) <= self.levels or not self._fit(levels):
            return None
        path = "".join(f"{level}/" for level in levels)
        # Discovery skips such partitions too, and the table's keys cannot be as long.
        if len(path.encode("utf-8", "surrogatepass")) > self._longest_path:
            return None
        return Partition(bucket, root.prefix + path, path)

    def _fit(self, levels: Sequence[str]) -> bool:
        for pattern, level in zip(self._pattern, levels, strict=False):
            if level != pattern and not ("*" in pattern and matches(pattern, level)):
                return False
        if self._date_format is None:
            return True
        return self._is_date("/".join(levels[len(self._pattern) :]))

    def _is_date(self, text: str) -> bool:
        """Return whether these levels are what the date format gives for some day."""
        found = self._dates.fullmatch(text)
        if found is None:
            return False
        parts = {name: int(value) for name, value in found.groupdict().items()}
        day, hour = f"{parts['Y']:04d}", parts.get("H", 0)
        if "j" in parts:
            day, form = f"{day} {parts['j']}", "%Y %j %H %z"
        else:
            day, form = f"{day} {parts.get('m', 1)} {parts.get('d', 1)}", "%Y %m %d %H %z"
        try:
            moment = datetime.strptime(f"{day} {hour} +0000", form)  # noqa: DTZ007 - both forms have %z
        except ValueError:
            return False
        # Also checks that the month agrees with the day of the year, if a format has both.
        return expand(self._date_format or "", moment, moment.replace(minute=1)) == (f"{text}/",)


def _expression(date_format: str) -> str:
    """Return a regular expression for a date format; a repeated number must be the same."""
    seen: set[str] = set()
    pieces = []
    for piece in re.split(r"(%[A-Za-z])", date_format):
        letter = piece[1:] if piece.startswith("%") and piece[1:] in _DIRECTIVES else ""
        if not letter:
            pieces.append(re.escape(piece))
        else:
            pieces.append(f"(?P={letter})" if letter in seen else _DIRECTIVES[letter])
            seen.add(letter)
    return "".join(pieces)


@dataclass(frozen=True)
class Stream:
    """A source whose objects are known from events.

    Attributes:
        settings: of its runs.
        objects, bytes, seconds: thresholds that start a run: number or size of registered objects,
            or how long one has waited.
    """

    name: str
    settings: Settings
    objects: int = _THRESHOLDS["objects"][0]
    bytes: int = _THRESHOLDS["bytes"][0]
    seconds: int = _THRESHOLDS["seconds"][0]

    @cached_property
    def scheme(self) -> PartitionScheme:
        """How its keys name partitions."""
        return PartitionScheme(self.settings)

    @cached_property
    def identity(self) -> StreamIdentity:
        """The stream's identity."""
        return identity_of(self.settings)

    @cached_property
    def document(self) -> str:
        """The input of its runs; always the same text, so that starting one twice has no effect."""
        return json.dumps(self.settings.to_dict(), sort_keys=True, separators=(",", ":"))


def identity_of(settings: Settings) -> StreamIdentity:
    """Return the identity of the stream that a run takes its objects from.

    Raises:
        InvalidInput: the run names no stream.
    """
    _, name = table_and_stream(settings)
    return StreamIdentity(
        name,
        settings.s3_source_uri,
        settings.s3_destination_uri,
        settings.s3_state_uri,
        PartitionScheme(settings).text,
    )


def table_and_stream(settings: Settings) -> tuple[str, str]:
    """Return the names of the table and of the stream in it.

    Raises:
        InvalidInput: the run names no stream.
    """
    table, _, stream = settings.listing.removeprefix("events:").rpartition("/")
    if not table:
        raise InvalidInput("listing", settings.listing, "events:TABLE/STREAM")
    return table, stream


def parse_streams(text: str, table: str) -> tuple[Stream, ...]:
    """Parse streams from the JSON list that a deployment passes to its functions.

    Args:
        text: ``[{"name", "input", "objects"?, "bytes"?, "seconds"?}]``.
        table: name of the DynamoDB table.

    Raises:
        InvalidInput: it is not such a list, or a stream's input is invalid.
    """
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, list) or not given:
        raise InvalidInput("STREAMS", text, f"a JSON list of objects with {', '.join(_FIELDS)}")
    streams = tuple(_stream(one, table) for one in given)
    names = [one.name for one in streams]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("STREAMS", name, "a name of its own for each stream")
    return streams


def _stream(given: object, table: str) -> Stream:
    if not isinstance(given, Mapping) or set(given) - set(_FIELDS):
        raise InvalidInput(
            "STREAMS", given, f"an object with {', '.join(_FIELDS)} and nothing else"
        )
    name = given.get("name")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise InvalidInput("STREAMS.name", name, NAME_ACCEPTED)
    thresholds: dict[str, Any] = {field: _threshold(given, field) for field in _THRESHOLDS}
    document = given.get("input")
    if not isinstance(document, Mapping):
        raise InvalidInput("STREAMS.input", document, "the input of a run")
    filled: dict[str, Any] = {**document, "listing": f"events:{table}/{name}"}
    settings = Settings.from_input(filled)
    return Stream(name, settings, **thresholds)


def _threshold(given: Mapping[str, object], field: str) -> int:
    default, most = _THRESHOLDS[field]
    value = given.get(field, default)
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidInput(f"STREAMS.{field}", value, f"a whole number from 1 to {most:,}")
    return value
