"""What Glue and Athena are asked; botocore checks it against their models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from compactor.errors import InvalidInput, TransientStoreError
from compactor.settings.tables import parse_table
from compactor_tables.aws.athena_queries import AthenaResults
from compactor_tables.aws.glue_tables import GlueTables

ACCOUNT = "123456789012"
TABLE = parse_table("glue:bronze.events")
NAMED = {"CatalogId": ACCOUNT, "DatabaseName": "bronze", "TableName": "events"}


class Script:
    """A client that answers what it is told to, in that order, and nothing else."""

    def __init__(self, service: str) -> None:
        session = botocore.session.get_session()
        self.client = session.create_client(
            service,
            "us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.stubber = Stubber(self.client)
        self.stubber.activate()

    def answers(self, operation: str, answer: dict[str, Any], asked: dict[str, Any]) -> None:
        self.stubber.add_response(operation, answer, asked)

    def refuses(self, operation: str, code: str, status: int = 400) -> None:
        self.stubber.add_client_error(operation, code, "no", status)


@pytest.fixture
def glue() -> Iterator[Script]:
    made = Script("glue")
    yield made
    made.stubber.assert_no_pending_responses()


def tables(script: Script) -> GlueTables:
    return GlueTables(script.client, ACCOUNT)


def test_a_tables_metadata_is_where_the_catalog_says(glue: Script) -> None:
    parameters = {"metadata_location": "s3://lake/t/metadata/1.json", "table_type": "ICEBERG"}
    answer = {"Table": {"Name": "events", "Parameters": parameters}}
    glue.answers("get_table", answer, {"DatabaseName": "bronze", "Name": "events"})

    assert tables(glue).metadata_uri(TABLE) == "s3://lake/t/metadata/1.json"


def test_a_table_of_another_kind_is_refused(glue: Script) -> None:
    glue.answers(
        "get_table", {"Table": {"Name": "events"}}, {"DatabaseName": "bronze", "Name": "events"}
    )

    with pytest.raises(InvalidInput, match="is no Iceberg table"):
        tables(glue).metadata_uri(TABLE)


@pytest.mark.parametrize(
    ("code", "status", "error", "words"),
    [
        ("EntityNotFoundException", 400, InvalidInput, "there is no table"),
        ("AccessDeniedException", 400, InvalidInput, "a role that allows"),
        ("ThrottlingException", 400, TransientStoreError, "Throttling"),
        ("InternalServiceException", 500, TransientStoreError, "InternalService"),
    ],
)
def test_what_glue_refuses_is_reported_by_what_helps(
    glue: Script, code: str, status: int, error: type[Exception], words: str
) -> None:
    glue.refuses("get_table", code, status)

    with pytest.raises(error, match=words):
        tables(glue).metadata_uri(TABLE)


def test_the_optimizers_that_are_on_are_named_and_the_account_is_asked_for_once(
    glue: Script,
) -> None:
    sts = Script("sts")
    sts.answers("get_caller_identity", {"Account": ACCOUNT}, {})
    for kind, is_on in (("compaction", False), ("retention", True)):
        optimizer = {"type": kind, "configuration": {"enabled": is_on}}
        glue.answers(
            "get_table_optimizer",
            {**NAMED, "TableOptimizer": optimizer},
            {**NAMED, "Type": kind},
        )
    glue.refuses("get_table_optimizer", "EntityNotFoundException")

    assert GlueTables(glue.client, identity=sts.client).optimizers_on(TABLE) == ["retention"]


def test_optimizers_that_may_not_be_read_are_refused(glue: Script) -> None:
    glue.refuses("get_table_optimizer", "AccessDeniedException")

    with pytest.raises(InvalidInput, match="a role that allows"):
        tables(glue).optimizers_on(TABLE)


def test_rows_come_without_their_heading() -> None:
    athena = Script("athena")
    rows = [["side", "number", "hash"], ["before", "7", "AB"], ["after", "7"]]
    data = [
        {"Data": [{"VarCharValue": one} for one in row] + [{}] * (3 - len(row))} for row in rows
    ]
    athena.answers(
        "get_query_results",
        {"ResultSet": {"Rows": data}},
        {"QueryExecutionId": "q", "MaxResults": 1_000},
    )

    assert AthenaResults(athena.client).rows("q") == [["before", "7", "AB"], ["after", "7", ""]]
