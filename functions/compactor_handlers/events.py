"""State that the event handlers keep between calls: streams and registry."""

from __future__ import annotations

import os
from dataclasses import dataclass

from compactor.errors import InvalidInput
from compactor.partition.events import registry_at
from compactor.registry.registry_ports import Registry
from compactor.registry.streams import Stream, parse_streams

# Environment variables: JSON list of streams; DynamoDB table.
STREAMS, TABLE = "STREAMS", "REGISTRY_TABLE"


@dataclass(frozen=True, slots=True)
class Office:
    """The streams and the registry that the function's environment names.

    Attributes:
        born: text that is unique to each stream's registration, by the stream's name.
    """

    streams: tuple[Stream, ...]
    registry: Registry
    born: dict[str, str]


def office(now: float) -> Office:
    """Return what the environment names. Each process claims a stream once.

    Args:
        now: UNIX seconds.

    Raises:
        InvalidInput: the environment is invalid, or a stream belongs to another source.
    """
    return _office(environment(TABLE), environment(STREAMS), int(now))


def environment(variable: str) -> str:
    """Return the value of an environment variable.

    Raises:
        InvalidInput: it is not set.
    """
    value = os.environ.get(variable, "")
    if not value:
        raise InvalidInput(variable, value, "a value in the function's environment")
    return value


_offices: dict[tuple[str, str], Office] = {}


def _office(table: str, streams: str, now: int) -> Office:
    place = table, streams
    if place not in _offices:
        parsed, registry = parse_streams(streams, table), registry_at(table)
        born = {one.name: registry.claim(one.identity, float(now)) for one in parsed}
        _offices[place] = Office(parsed, registry, born)
    return _offices[place]


def forget() -> None:
    """Clear the caches, so that the environment is re-read. For tests."""
    _offices.clear()
    registry_at.cache_clear()
