"""What an engine is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from compactor_dev.query_bench.layouts import Layout
from compactor_dev.query_bench.sets import QuerySet


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine with so many threads.

    Attributes:
        name: as ``--engines`` takes it.
        threads: 0 for as many as it takes by itself.
    """

    name: str
    threads: int = 0

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.name}, {self.threads or 'default'}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answered.

    Attributes:
        rows: its rows.
        seconds: it took, by its own clock.
        error: why there are none; empty when there are.
    """

    rows: list[list[Any]]
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        query: of :data:`compactor_dev.query_bench.sets.QUERIES`.
        given: the set.
        layout: of its records.
        needle: the event id that the query ``needle`` looks for.
    """

    query: str
    given: QuerySet
    layout: Layout
    needle: str


class Asked(Protocol):
    """An engine that is ready.

    Attributes:
        engine: which.
        version: of it.
    """

    engine: Engine
    version: str

    def ask(self, question: Question) -> Answer:
        """One query, on a connection of its own.

        Raises:
            TransientStoreError: the engine has ended.
        """
