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
from compactor_tables.aws.athena_queries import row_of
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


@pytest.mark.parametrize(
    ("code", "status", "error", "words"),
    [
        ("AccessDeniedException", 400, InvalidInput, "a role that allows"),
        ("ThrottlingException", 400, TransientStoreError, "Throttling"),
        ("InternalServiceException", 500, TransientStoreError, "InternalService"),
    ],
)
def test_what_glue_refuses_is_reported_by_what_helps(
    glue: Script, code: str, status: int, error: type[Exception], words: str
) -> None:
    glue.refuses("get_table_optimizer", code, status)

    with pytest.raises(error, match=words):
        tables(glue).optimizers_on(TABLE)


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


def test_a_row_comes_without_its_heading() -> None:
    athena = Script("athena")
    data = [{"Data": [{"VarCharValue": one} for one in row]} for row in (["a", "b"], ["7", "8"])]
    answer = {"ResultSet": {"Rows": data}}
    athena.answers("get_query_results", answer, {"QueryExecutionId": "q"})

    assert row_of("q", athena.client) == ["7", "8"]
