"""Results of Athena queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compactor.aws.services import Thing, answers_of, service_client

_MOST_ROWS = 1_000


class AthenaResults:
    """Implements :class:`compactor_tables.service_ports.Queries`.

    Args:
        client: of Athena.
    """

    def __init__(self, client: Any = None) -> None:
        self._client = client or service_client("athena")

    def rows(self, query_id: str) -> Sequence[Sequence[str]]:
        """See the port."""
        thing = Thing("query", query_id, "a query that has ended")
        with answers_of(f"get the results of query {query_id}", thing):
            answer = self._client.get_query_results(
                QueryExecutionId=query_id, MaxResults=_MOST_ROWS
            )
        rows = [
            [one.get("VarCharValue", "") for one in row.get("Data", [])]
            for row in answer["ResultSet"].get("Rows", [])
        ]
        # The first row of a SELECT's result is the header.
        return rows[1:]
