"""What Glue, Athena and S3 Tables are asked; botocore checks it against their models."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from compactor.errors import AlreadyExists, InvalidInput, ObjectMissing, TransientStoreError
from compactor.settings.tables import parse_table
from compactor_tables.aws.athena_results import AthenaResults
from compactor_tables.aws.glue_tables import GlueTables
from compactor_tables.optimizers import KINDS, wanted
from compactor_tables.orders import STEPS, Order

ACCOUNT = "123456789012"
TABLE = parse_table("glue:bronze.events")
ROLE = "arn:aws:iam::123456789012:role/optimizers"
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


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_order_wants_is_what_glues_model_takes(glue: Script, kind: str) -> None:
    order = Order(run_id="r", table=TABLE.text, engine="glue", steps=STEPS, how="sort")
    configuration = wanted(order, ROLE)[kind]
    asked = {**NAMED, "Type": kind, "TableOptimizerConfiguration": configuration}
    glue.answers("create_table_optimizer", {}, asked)
    glue.answers("update_table_optimizer", {}, asked)

    tables(glue).create(TABLE, kind, configuration)
    tables(glue).update(TABLE, kind, configuration)


def test_the_model_refuses_another_shape() -> None:
    script = Script("glue")
    asked = {**NAMED, "Type": "retention", "TableOptimizerConfiguration": {"role": ROLE}}
    script.answers("create_table_optimizer", {}, asked)

    with pytest.raises(InvalidInput, match="Unknown parameter"):
        tables(script).create(TABLE, "retention", {"role": ROLE})


def test_an_optimizer_that_is_not_there_is_none(glue: Script) -> None:
    glue.refuses("get_table_optimizer", "EntityNotFoundException")
    glue.refuses("list_table_optimizer_runs", "EntityNotFoundException")
    glue.refuses("update_table_optimizer", "EntityNotFoundException")

    assert tables(glue).look(TABLE, "compaction") is None
    assert tables(glue).runs(TABLE, "compaction", 10) == []
    with pytest.raises(ObjectMissing):
        tables(glue).update(TABLE, "compaction", {"enabled": True})


def test_races_are_distinguished(glue: Script) -> None:
    glue.refuses("create_table_optimizer", "AlreadyExistsException")
    glue.refuses("update_table_optimizer", "ConcurrentModificationException")

    with pytest.raises(AlreadyExists):
        tables(glue).create(TABLE, "compaction", {"enabled": True})
    with pytest.raises(TransientStoreError):
        tables(glue).update(TABLE, "compaction", {"enabled": True})


def test_runs_are_read_page_by_page(glue: Script) -> None:
    began = datetime(2026, 11, 21, tzinfo=UTC)
    metrics = {"IcebergMetrics": {"DpuHours": 0.5, "NumberOfFilesCompacted": 3}}
    run = {"eventType": "completed", "startTimestamp": began, "compactionMetrics": metrics}
    asked = {**NAMED, "Type": "compaction", "MaxResults": 3}
    glue.answers(
        "list_table_optimizer_runs", {"TableOptimizerRuns": [run, run], "NextToken": "n"}, asked
    )
    glue.answers(
        "list_table_optimizer_runs",
        {"TableOptimizerRuns": [run, run]},
        {**asked, "NextToken": "n"},
    )

    assert tables(glue).runs(TABLE, "compaction", 3) == [run] * 3


def test_the_account_is_asked_for_once(glue: Script) -> None:
    sts = Script("sts")
    sts.answers("get_caller_identity", {"Account": ACCOUNT}, {})
    optimizer = {"type": "retention", "configuration": {"enabled": True}}
    for _ in range(2):
        glue.answers(
            "get_table_optimizer",
            {**NAMED, "TableOptimizer": optimizer},
            {**NAMED, "Type": "retention"},
        )

    found = GlueTables(glue.client, identity=sts.client)
    assert found.look(TABLE, "retention") == optimizer
    assert found.look(TABLE, "retention") == optimizer


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
