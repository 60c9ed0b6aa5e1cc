"""Queries as SQL that all engines know, over events or over CloudTrail's records.

Runs in the Python of any engine: nothing but the standard library.
"""

# ruff: noqa: S608 - every part of a statement is this bench's own
from __future__ import annotations

from typing import Any

COLUMNS = ("event_id", "level", "service", "http", "message")
#: Of a CloudTrail record.
TRAIL = ("eventID", "eventSource", "eventName", "errorCode")
REGION = "us-east-1"


def statement(query: str, table: str, needle: str, size: str) -> str:
    """A query as SQL that all of them know.

    Args:
        query: its name.
        table: what stands behind FROM.
        needle: the event id that is looked for.
        size: the expression of the bytes.
    """
    return {
        "count": f"SELECT count(*) FROM {table}",
        "day": f"SELECT count(*), CAST(sum({size}) AS BIGINT) FROM {table}",
        "group": (
            "SELECT service, count(*), CAST(sum(CASE WHEN level = 'ERROR' THEN 1 ELSE 0 END)"
            f" AS BIGINT), CAST(sum({size}) AS BIGINT) FROM {table} GROUP BY 1 ORDER BY 1"
        ),
        "needle": f"SELECT event_id, service, level FROM {table} WHERE event_id = '{needle}'",
    }[query]


def apart(order: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Places of documents, and of their records."""
    documents = order["documents"]
    return documents, [one for one in order["places"] if one not in documents]


def as_events(tables: list[str]) -> str:
    """CloudTrail's columns by the names that queries ask for, in SQL that all of them know."""
    return (
        "(SELECT eventID AS event_id, eventSource AS service, CASE WHEN errorCode IS NULL THEN"
        " 'none' ELSE 'ERROR' END AS level, length(eventName) AS size"
        f" FROM ({' UNION ALL '.join(tables)}) AS calls) AS events"
    )
