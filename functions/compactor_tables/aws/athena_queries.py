"""Athena's queries: their results, and how long those that read a table took."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from compactor.aws.services import Thing, answers_of, service_client
from compactor.settings.tables import DELTA, TableAddress

_PAGE, _MOST_PAGES = 50, 20
# Statements that read; maintenance, ours or others', does not count.
_READS = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL
)


def row_of(query_id: str, client: Any = None) -> Sequence[str]:
    """Return the only row of a query's result.

    Raises:
        InvalidInput: there is no such result, or it may not be read.
        TransientStoreError: the service did not answer.
    """
    client = client or service_client("athena")
    thing = Thing("query", query_id, "a query that has ended")
    with answers_of(f"get the results of query {query_id}", thing):
        answer = client.get_query_results(QueryExecutionId=query_id)
    # The first row of a SELECT's result is the header.
    _, row = answer["ResultSet"]["Rows"]
    return [one["VarCharValue"] for one in row["Data"]]


class AthenaScans:
    """Implements :class:`compactor_tables.due_tables.Scans` by the queries of a workgroup.

    A successful query counts if its text names the table, either qualified by its database or run
    in it. A failed one would make the table look fast.

    Args:
        workgroup: whose queries count.
        table: that they read.
        client: of Athena.
    """

    def __init__(self, workgroup: str, table: TableAddress, client: Any = None) -> None:
        self._workgroup = workgroup
        self._client = client or service_client("athena")
        if table.kind == DELTA:
            # Assumed to be registered under the name of its directory, in any database.
            name, self._database = table.uri.rstrip("/").rpartition("/")[2], ""
        else:
            name, self._database = table.name[-1], table.name[-2]
        before = rf'"?{re.escape(self._database)}"?\s*\.\s*' if self._database else ""
        self._qualified = re.compile(
            rf'(?<![\w"]){before}"?{re.escape(name)}"?(?![\w"])', re.IGNORECASE
        )
        self._alone = re.compile(rf'(?<![\w".])"?{re.escape(name)}"?(?![\w".])', re.IGNORECASE)

    def last(self, count: int, since: float) -> list[float]:
        """See the port."""
        thing = Thing("athena_workgroup", self._workgroup, "a workgroup of Athena")
        with answers_of(f"list the queries of {self._workgroup}", thing):
            return list(islice(self._seconds(since), count))

    def _seconds(self, since: float) -> Iterator[float]:
        for query in self._queries():
            if _submitted(query).timestamp() <= since:
                return
            statistics = query.get("Statistics", {})
            # Without the time in the queue.
            millis = statistics.get("EngineExecutionTimeInMillis")
            reused = statistics.get("ResultReuseInformation", {}).get("ReusedPreviousResult")
            is_success = query["Status"]["State"] == "SUCCEEDED"
            if millis is not None and is_success and not reused and self._is_scan(query):
                yield millis / 1_000

    def _queries(self) -> Iterator[Mapping[str, Any]]:
        """Return the workgroup's queries, newest first."""
        pages = self._client.get_paginator("list_query_executions").paginate(
            WorkGroup=self._workgroup, PaginationConfig={"PageSize": _PAGE}
        )
        for page in islice(pages, _MOST_PAGES):
            ids = page["QueryExecutionIds"]
            if ids:
                answer = self._client.batch_get_query_execution(QueryExecutionIds=ids)
                yield from sorted(answer["QueryExecutions"], key=_submitted, reverse=True)

    def _is_scan(self, query: Mapping[str, Any]) -> bool:
        sql = query["Query"]
        if not _READS.match(sql):
            return False
        if self._qualified.search(sql):
            return True
        database = query.get("QueryExecutionContext", {}).get("Database", "")
        is_in_database = database.lower() == self._database.lower()
        return is_in_database and self._alone.search(sql) is not None


def _submitted(query: Mapping[str, Any]) -> datetime:
    moment: datetime = query["Status"]["SubmissionDateTime"]
    return moment
