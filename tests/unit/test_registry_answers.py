"""What DynamoDB and Step Functions answer when they do not do as asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError

from compactor.aws.executions import StateMachine
from compactor.aws.registry import DynamoRegistry
from compactor.errors import InvalidInput, TransientStoreError
from compactor.model import Partition
from compactor.registry.items import Item, ItemState, Mark
from compactor.registry.registry_ports import ExecutionState

PARTITION = Partition("source", "logs/a/", "a/")


def refusal(code: str, status: int = 400, **more: Any) -> ClientError:
    told: Any = {
        "Error": {"Code": code, "Message": "told"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **more,
    }
    return ClientError(told, "operation")


class Client:
    """Answers each request with the next of these; an error is raised."""

    def __init__(self, answers: Iterable[Any]) -> None:
        self.answers = iter(answers)
        self.asked: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def request(**given: Any) -> Any:
            self.asked.append(given)
            answer = next(self.answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return request


def registry(*answers: Any) -> tuple[DynamoRegistry, Client]:
    client = Client(answers)
    return DynamoRegistry("table", client, pause=lambda longest: None), client


def item(name: str = "1") -> Item:
    return Item(PARTITION, name, "etag", 10, 1.0, "A", 2.0)


@pytest.mark.parametrize(
    "error",
    [
        refusal("ProvisionedThroughputExceededException"),
        refusal("ThrottlingException"),
        refusal("RequestLimitExceeded"),
        refusal("InternalServerError", 500),
        refusal("anything", 503),
        ConnectTimeoutError(endpoint_url="https://dynamodb"),
    ],
)
def test_what_may_pass_fails_the_item_alone(error: Exception) -> None:
    found, _ = registry(error)
    ((failed, why),) = found.register("logs", [item()]).failed
    assert failed == item()
    assert isinstance(why, TransientStoreError)


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (refusal("AccessDeniedException"), "permission"),
        (refusal("ResourceNotFoundException"), "listing"),
        (refusal("UnrecognizedClientException"), "credentials"),
        (refusal("ValidationException"), "request"),
        (NoCredentialsError(), "credentials"),
    ],
)
def test_a_mistake_is_the_callers_in_one_line(error: Exception, field: str) -> None:
    found, _ = registry(error)
    with pytest.raises(InvalidInput) as caught:
        found.register("logs", [item()])
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def cancelled(*codes: str) -> ClientError:
    reasons = [{"Code": code} for code in codes]
    return refusal("TransactionCanceledException", CancellationReasons=reasons)


def marks(*names: str) -> list[Mark]:
    return [Mark(item(name), ItemState.COMPACTED) for name in names]


def test_a_transaction_goes_on_without_what_is_not_what_it_was() -> None:
    found, client = registry(cancelled("None", "ConditionalCheckFailed", "None"), {})
    assert found.mark("logs", marks("1", "2", "3"), 10.0) == 2
    again = [one["Update"]["Key"]["sk"]["S"] for one in client.asked[1]["TransactItems"]]
    assert again == ["/1", "/3"]


def test_a_transaction_that_met_another_is_tried_again() -> None:
    found, client = registry(cancelled("None", "TransactionConflict"), {})
    assert found.mark("logs", marks("1", "2"), 10.0) == 2
    assert len(client.asked) == 2


def test_a_transaction_of_which_nothing_is_left_is_over() -> None:
    found, client = registry(cancelled("ConditionalCheckFailed"))
    assert found.mark("logs", marks("1"), 10.0) == 0
    assert len(client.asked) == 1


def test_a_transaction_that_always_meets_others_is_for_later() -> None:
    found, _ = registry(*[cancelled("TransactionConflict")] * 10)
    with pytest.raises(TransientStoreError):
        found.mark("logs", marks("1"), 10.0)


def test_transactions_have_a_hundred_items_at_most() -> None:
    found, client = registry({}, {}, {})
    assert found.mark("logs", marks(*(str(n) for n in range(201))), 10.0) == 201
    assert [len(one["TransactItems"]) for one in client.asked] == [100, 100, 1]


def test_every_put_is_on_a_condition_and_every_query_consistent() -> None:
    found, client = registry({}, *[{"Items": []}] * 9)
    found.register("logs", [item()])
    put = client.asked[0]
    assert put["ConditionExpression"] == "attribute_not_exists(pk) OR sequencer < :sequencer"
    assert list(found.pending("logs", PARTITION)) == []
    assert all(one["ConsistentRead"] and one["IndexName"] == "pending" for one in client.asked[1:])


def test_a_state_machine_that_does_not_answer_is_asked_later() -> None:
    machine = StateMachine(
        "arn:aws:states:x:1:stateMachine:m", Client([refusal("ThrottlingException")])
    )
    with pytest.raises(TransientStoreError):
        machine.start("name", "{}")
    machine = StateMachine("arn", Client([refusal("StateMachineDoesNotExist")]))
    with pytest.raises(InvalidInput, match="STATE_MACHINE_ARN"):
        machine.start("name", "{}")


def test_the_arn_of_an_execution_that_is_over_is_known_by_its_name() -> None:
    machine = StateMachine(
        "arn:aws:states:x:1:stateMachine:m", Client([refusal("ExecutionAlreadyExists")])
    )
    assert machine.start("n", "{}") == ("arn:aws:states:x:1:execution:m:n", None)


@pytest.mark.parametrize(
    "refused",
    [
        {"Responses": [{"Error": {"Code": "AccessDenied"}}] * 8},
        refusal("AccessDeniedException"),
        refusal("ValidationException"),
    ],
)
def test_where_many_cannot_be_inserted_together_they_are_put_one_by_one(refused: Any) -> None:
    found, client = registry(refused, *[{}] * 16)
    assert len(found.register("logs", [item(str(n)) for n in range(8)]).new) == 8
    # It is not asked for a second time.
    assert len(found.register("logs", [item(str(n)) for n in range(8)]).new) == 8
    assert sum("Statements" in one for one in client.asked) == 1


def test_what_an_insert_refuses_is_put_on_its_condition() -> None:
    answers: list[Any] = [{}] * 6 + [{"Error": {"Code": "DuplicateItem"}}] * 2
    there = refusal("ConditionalCheckFailedException", Item={"pk": {"S": "x"}})
    found, client = registry({"Responses": answers}, there, {})
    done = found.register("logs", [item(str(n)) for n in range(8)])
    assert (len(done.new), done.known) == (7, 1)
    assert all("sequencer < :sequencer" in one["ConditionExpression"] for one in client.asked[1:])


def test_an_insert_that_is_asked_to_slow_down_goes_on_one_by_one() -> None:
    found, client = registry(refusal("ThrottlingException"), *[{}] * 8)
    assert len(found.register("logs", [item(str(n)) for n in range(8)]).new) == 8
    assert len(client.asked) == 9


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("RUNNING", ExecutionState.RUNNING),
        ("SUCCEEDED", ExecutionState.ENDED),
        ("FAILED", ExecutionState.FAILED),
        ("TIMED_OUT", ExecutionState.FAILED),
        ("ABORTED", ExecutionState.FAILED),
    ],
)
def test_an_execution_that_did_not_come_to_its_end_has_failed(
    status: str, state: ExecutionState
) -> None:
    assert StateMachine("arn", Client([{"status": status}])).state_of("arn:x") is state
