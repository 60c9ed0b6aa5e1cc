"""Turns: every engine asks every query of every layout, one after the other, again and again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compactor.errors import IntegrityError
from compactor_dev.query_bench.access import AccessLog, Requests
from compactor_dev.query_bench.asking import Asked, Question
from compactor_dev.query_bench.lake import Filled
from compactor_dev.query_bench.layouts import Layout


@dataclass(frozen=True, slots=True)
class Turn:
    """One query, once.

    Attributes:
        given, layout, engine, query: names of the set, the layout, the engine and the query.
        number: of the turn; 0 is the one that warms up.
        seconds: by the engine's own clock.
        requests: meanwhile.
        load: the machine's average of a minute.
    """

    given: str
    layout: str
    engine: str
    query: str
    number: int
    seconds: float
    requests: Requests
    load: float


class Session:
    """Asks, and compares every answer.

    Args:
        log: tells what was asked of S3.
        turns: after the one that warms up.
        slow_seconds: what takes longer is asked no second time.
        on_turn: told what comes next.
    """

    def __init__(
        self,
        log: AccessLog,
        turns: int,
        slow_seconds: float,
        on_turn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._log = log
        self._turns = turns
        self._slow_seconds = slow_seconds
        self._on_turn = on_turn

    def measure(
        self,
        filled: Filled,
        layouts: Sequence[Layout],
        engines: Sequence[Asked],
        queries: Sequence[str],
    ) -> list[Turn]:
        """All turns over one set; engines follow each other, so that a slow minute meets all.

        Raises:
            IntegrityError: an engine answered otherwise than the objects have it, or not at all.
        """
        found: list[Turn] = []
        slow: set[tuple[str, str, str]] = set()
        for number in range(self._turns + 1):
            for query in queries:
                for layout in layouts:
                    for engine in engines:
                        which = (layout.name, engine.engine.title, query)
                        if which in slow:
                            continue
                        self._on_turn(f"{filled.given.name}, {', '.join(which)}, turn {number}")
                        turn = self._once(filled, layout, engine, query, number)
                        if turn.seconds > self._slow_seconds:
                            slow.add(which)
                        found.append(turn)
        return found

    def _once(self, filled: Filled, layout: Layout, engine: Asked, query: str, number: int) -> Turn:
        self._log.skip()
        answer = engine.ask(Question(query, filled.given, layout, filled.answers.needle[0]))
        requests = self._log.take()
        name = f"{filled.given.name}, {layout.name}, {engine.engine.title}, {query}"
        if answer.error:
            raise IntegrityError(f"{name}: {answer.error}")
        expected = filled.answers.of(query)
        if answer.rows != expected:
            raise IntegrityError(f"{name}: {answer.rows[:3]}, not {expected[:3]}")
        return Turn(
            filled.given.name,
            layout.name,
            engine.engine.title,
            query,
            number,
            answer.seconds,
            requests,
            os.getloadavg()[0],
        )
