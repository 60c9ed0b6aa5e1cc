"""Trino as one of the engines: it reads tables of a catalog, where others are told objects."""

from __future__ import annotations

import time

from compactor_dev.query_bench.asking import Answer, Engine, Question
from compactor_dev.query_bench.catalog import DATABASE, table_name
from compactor_dev.query_bench.sets import ASKED_DAY, day_value
from compactor_dev.query_bench.statements import statement
from compactor_dev.trino.server import QueryFailed, Trino


class TrinoEngine:
    """A running server; whoever started it ends it.

    Args:
        engine: with how many threads it was started.
        trino: the server.
    """

    def __init__(self, engine: Engine, trino: Trino) -> None:
        self.engine = engine
        self.version = trino.version
        self._trino = trino

    def ask(self, question: Question) -> Answer:
        """See :meth:`compactor_dev.query_bench.asking.Asked.ask`."""
        table = f'"{DATABASE}"."{table_name(question.given, question.layout)}"'
        if question.query == "day":
            # Partitions are chosen by it, as others are told the places of one day.
            table = f"(SELECT * FROM {table} WHERE dt = '{day_value(ASKED_DAY)}')"  # noqa: S608 - names of this bench
        asked = statement(question.query, table, question.needle, "http.bytes")
        started = time.perf_counter()
        try:
            rows = self._trino.ask(asked)
        except QueryFailed as error:
            return Answer([], time.perf_counter() - started, str(error))
        return Answer(rows, time.perf_counter() - started)
