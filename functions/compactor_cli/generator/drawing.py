"""The random values of one object, shared by its key and its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Protocol

from compactor_cli.generator.arrivals import DAY_SECONDS
from compactor_cli.generator.spec import REGIONS, GeneratorSpec

_WINDOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Site:
    """Where an object of an AWS service comes from."""

    account: str
    region: str


@dataclass(frozen=True, slots=True)
class Draw:
    """The random values of one object.

    Attributes:
        rng: the object's own random numbers, seeded by spec and index alone.
        index: number of the object, from 0.
        share: position in the whole window, 0 to 1.
        event_time: UNIX seconds of the end of the object's five minutes of events.
        day: ``YYYY-MM-DD`` of ``event_time``.
        site: account and region.
    """

    rng: Random
    index: int
    share: float
    event_time: int
    day: str
    site: Site

    def seconds(self, rows: int) -> list[int]:
        """Second of the day of each record, ascending, within the object's five minutes."""
        end = self.event_time % DAY_SECONDS
        start = max(0, end - _WINDOW_SECONDS)
        return [start + (end - start) * row // rows for row in range(rows)]


class Renderer(Protocol):
    """The records of one format, and the text around them in an object.

    An object is ``prologue + separator.join(records) + epilogue``.
    """

    @property
    def separator(self) -> str:
        """Between two records."""
        ...

    @property
    def epilogue(self) -> str:
        """After the last record."""
        ...

    def prologue(self, draw: Draw) -> str:
        """Before the first record: a header line, an envelope."""
        ...

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Return ``rows`` records, each with a unique identity."""
        ...


def sites(spec: GeneratorSpec) -> Sequence[Site]:
    """All sites of a spec, the same for the same seed."""
    rng = Random(f"sites:{spec.seed}")
    accounts = rng.sample(range(10**11, 10**12), spec.accounts)
    return [
        Site(str(account), region) for account in accounts for region in REGIONS[: spec.regions]
    ]


@cache
def clock() -> Sequence[str]:
    """``HH:MM:SS`` of every second of a day, as a table: formatting per record is slower."""
    return [
        f"{hour:02d}:{minute:02d}:{second:02d}"
        for hour in range(24)
        for minute in range(60)
        for second in range(60)
    ]


def address(rng: Random) -> str:
    """A private or documentation IPv4 address."""
    net = rng.choice(("10.0", "10.1", "172.31", "192.168", "198.51", "203.0"))
    if net in ("198.51", "203.0"):
        return f"{net}.{'100' if net == '198.51' else '113'}.{rng.randrange(1, 255)}"
    return f"{net}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
