"""How long scans of a table took, asked of Athena as its model says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.stub import ANY, Stubber

from compactor.errors import InvalidInput, TransientStoreError
from compactor.settings.tables import parse_table
from compactor_tables.aws.athena_queries import AthenaScans

NOW = 1_795_000_000.0
TABLE = parse_table("glue:gold.orders")


def moment(before: float) -> datetime:
    return datetime.fromtimestamp(NOW - before, UTC)


@pytest.fixture
def stubbed() -> Iterator[Any]:
    client = botocore.session.get_session().create_client(
        "athena", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    with Stubber(client) as stub:
        yield client, stub
        stub.assert_no_pending_responses()


def query(
    sql: str, before: float, millis: int, *, database: str = "gold", state: str = "SUCCEEDED"
) -> dict[str, Any]:
    return {
        "Query": sql,
        "QueryExecutionContext": {"Database": database},
        "Status": {"State": state, "SubmissionDateTime": moment(before)},
        "Statistics": {"EngineExecutionTimeInMillis": millis},
    }


COUNTED = [
    query("SELECT * FROM gold.orders", 10, 1_000, database="other"),
    query('-- nightly\nselect a from "gold"."orders" o', 20, 2_000),
    query("WITH x AS (SELECT 1) SELECT * FROM orders, x", 30, 3_000),
]
PASSED_OVER = [
    query("SELECT * FROM orders", 40, 9, database="silver"),
    query("SELECT * FROM silver.orders", 50, 9),
    query("SELECT * FROM gold.orders_old", 60, 9),
    query("SELECT * FROM gold.reorders", 60, 9),
    query("OPTIMIZE gold.orders REWRITE DATA USING BIN_PACK", 70, 9),
    query("INSERT INTO gold.orders SELECT 1", 75, 9),
    query("SELECT * FROM gold.orders", 80, 9, state="FAILED"),
    query("SELECT * FROM gold.orders", 90, 9)
    | {
        "Statistics": {
            "EngineExecutionTimeInMillis": 9,
            "ResultReuseInformation": {"ReusedPreviousResult": True},
        }
    },
    query("SELECT * FROM gold.orders", 5_000, 9),
]


def test_the_queries_of_a_workgroup_that_read_the_table_are_reported(stubbed: Any) -> None:
    client, stub = stubbed
    ids = [f"q{n}" for n in range(len(COUNTED) + len(PASSED_OVER))]
    stub.add_response(
        "list_query_executions",
        {"QueryExecutionIds": ids},
        {"WorkGroup": "primary", "MaxResults": 50},
    )
    stub.add_response(
        "batch_get_query_execution",
        {"QueryExecutions": [*COUNTED, *PASSED_OVER]},
        {"QueryExecutionIds": ANY},
    )
    found = AthenaScans("primary", TABLE, client).last(7, NOW - 1_000)
    assert found == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("count", "pages"), [(2, 1), (3, 2), (9, 2)])
def test_pages_are_read_until_there_are_enough_scans_or_they_are_too_old(
    stubbed: Any, count: int, pages: int
) -> None:
    client, stub = stubbed
    asked = {"WorkGroup": "primary", "MaxResults": 50}
    second = [query("SELECT * FROM orders", before, 3_000) for before in (500, 2_000)]
    for more, token, queries in (({}, "t", COUNTED[:2]), ({"NextToken": "t"}, "u", second))[:pages]:
        stub.add_response(
            "list_query_executions",
            {"QueryExecutionIds": ["q"] * len(queries), "NextToken": token},
            {**asked, **more},
        )
        # The order of the second answer is not that of the list.
        stub.add_response(
            "batch_get_query_execution",
            {"QueryExecutions": queries[::-1]},
            {"QueryExecutionIds": ANY},
        )

    assert AthenaScans("primary", TABLE, client).last(count, NOW - 1_000) == [1, 2, 3][:count]


@pytest.mark.parametrize(
    ("code", "error"),
    [("InvalidRequestException", InvalidInput), ("ThrottlingException", TransientStoreError)],
)
def test_an_error_of_athena_names_the_workgroup(
    stubbed: Any, code: str, error: type[Exception]
) -> None:
    client, stub = stubbed
    stub.add_client_error("list_query_executions", code, "no")
    with pytest.raises(error, match="reports"):
        AthenaScans("reports", TABLE, client).last(7, 0)
