"""What Glue is asked for the readers' table, by its models, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from compactor.aws.glue_reader import GlueReader
from compactor.errors import AlreadyExists, InvalidInput, TransientStoreError
from compactor.readers.formats import SYMLINK_INPUT, Reading, descriptor_of, table_descriptor
from compactor.readers.reader_catalog import CatalogChange
from compactor.readers.states import Shown
from compactor.settings.reader_table import parse_reader_table

TABLE = parse_reader_table("glue:lake.logs")
WHERE = {"DatabaseName": "lake", "TableName": "logs"}
COLUMNS = [{"name": "id", "type": "bigint"}]
DESCRIPTOR = table_descriptor(Reading("serde", {"a": "b"}), COLUMNS, "s3://lake/none/")
MADE = {
    "Name": "logs",
    "TableType": "EXTERNAL_TABLE",
    "Parameters": {"EXTERNAL": "TRUE"},
    "PartitionKeys": [{"Name": "day", "Type": "string"}],
    "StorageDescriptor": DESCRIPTOR,
}


def glue_client() -> Any:
    return botocore.session.get_session().create_client(
        "glue",
        "us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def stubber() -> Iterator[Stubber]:
    made = Stubber(glue_client())
    made.activate()
    yield made
    made.assert_no_pending_responses()


def reader(stubber: Stubber) -> GlueReader:
    return GlueReader(TABLE, stubber.client)


def change(day: str, *, new: bool, shown: Shown = Shown.COMPACTED) -> CatalogChange:
    location = f"s3://lake/{day}/"
    return CatalogChange((day,), descriptor_of(DESCRIPTOR, shown, location), {"x": day}, new=new)


def test_partitions_are_changed_in_hundreds_and_each_error_is_reported(stubber: Stubber) -> None:
    changes = [change(f"{n:03}", new=n % 2 == 0) for n in range(402)]
    expected = {
        "batch_create_partition": ("PartitionInputList", [one for one in changes if one.new]),
        "batch_update_partition": ("Entries", [one for one in changes if not one.new]),
    }
    for call, (name, of_kind) in expected.items():
        for start in range(0, 201, 100):
            some = of_kind[start : start + 100]
            inputs: list[dict[str, Any]] = [
                {
                    "Values": list(one.values),
                    "StorageDescriptor": one.descriptor,
                    "Parameters": one.parameters,
                }
                for one in some
            ]
            if name == "Entries":
                inputs = [
                    {"PartitionValueList": one["Values"], "PartitionInput": one} for one in inputs
                ]
            answer: dict[str, Any] = {}
            if start == 100:
                key = "PartitionValues" if name != "Entries" else "PartitionValueList"
                detail = {"ErrorCode": "ConcurrentModificationException", "ErrorMessage": "no\nway"}
                answer = {"Errors": [{key: list(some[0].values), "ErrorDetail": detail}]}
            stubber.add_response(call, answer, {**WHERE, name: inputs})
    refused = reader(stubber).change(changes)
    told = "ConcurrentModificationException: no way"
    assert refused == {("200",): told, ("201",): told}


def test_what_is_left_unprocessed_is_asked_for_again(stubber: Stubber) -> None:
    def found(day: str) -> dict[str, Any]:
        return {"Values": [day], "StorageDescriptor": {**DESCRIPTOR, "Location": f"s3://{day}/"}}

    asked = [{"Values": ["a"]}, {"Values": ["b"]}]
    left = [{"Values": ["b"]}]
    stubber.add_response(
        "batch_get_partition",
        {"Partitions": [found("a")], "UnprocessedKeys": left},
        {**WHERE, "PartitionsToGet": asked},
    )
    stubber.add_response(
        "batch_get_partition", {"Partitions": [found("b")]}, {**WHERE, "PartitionsToGet": left}
    )
    entries = reader(stubber).entries([("a",), ("b",)])
    assert {values: one.location for values, one in entries.items()} == {
        ("a",): "s3://a/",
        ("b",): "s3://b/",
    }


def test_what_stays_unprocessed_is_for_later(stubber: Stubber) -> None:
    asked = [{"Values": ["a"]}]
    for _ in range(10):
        stubber.add_response(
            "batch_get_partition",
            {"Partitions": [], "UnprocessedKeys": asked},
            {**WHERE, "PartitionsToGet": asked},
        )
    with pytest.raises(TransientStoreError, match="1 partitions stay untold"):
        reader(stubber).entries([("a",)])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", TransientStoreError),
        ("AccessDeniedException", InvalidInput),
        ("EntityNotFoundException", InvalidInput),
    ],
)
def test_what_glue_refuses_is_reported_by_what_helps(
    stubber: Stubber, code: str, error: type[Exception]
) -> None:
    stubber.add_client_error("batch_update_partition", code, "no", 400)
    with pytest.raises(error):
        reader(stubber).change([change("a", new=False)])


def test_a_table_that_is_not_there_is_none_and_one_that_is_is_not_made_again(
    stubber: Stubber,
) -> None:
    stubber.add_client_error("get_table", "EntityNotFoundException")
    assert reader(stubber).table() is None
    stubber.add_client_error("batch_get_partition", "EntityNotFoundException")
    assert reader(stubber).entries([("1",)]) == {}
    stubber.add_client_error("create_table", "AlreadyExistsException")
    with pytest.raises(AlreadyExists):
        reader(stubber).create_table(MADE)


def test_a_partition_goes_through_its_states_in_a_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = glue_client()
        client.create_database(DatabaseInput={"Name": "lake"})
        catalog = GlueReader(TABLE, client)
        assert catalog.table() is None
        catalog.create_table(MADE)
        with pytest.raises(AlreadyExists):
            catalog.create_table(MADE)
        made = catalog.table()
        assert made is not None
        assert made["PartitionKeys"] == MADE["PartitionKeys"]
        assert catalog.change([change("1", new=True, shown=Shown.RAW)]) == {}
        assert catalog.change([change("1", new=True)]).keys() == {("1",)}
        assert catalog.change([change("2", new=False)]).keys() == {("2",)}
        assert catalog.change([change("1", new=False, shown=Shown.LISTED)]) == {}
        (found,) = catalog.entries([("1",), ("2",)]).values()
        assert (found.location, found.input_format) == ("s3://lake/1/", SYMLINK_INPUT)
        assert found.parameters == {"x": "1"}
        assert found.document["Columns"] == [{"Name": "id", "Type": "bigint"}]
