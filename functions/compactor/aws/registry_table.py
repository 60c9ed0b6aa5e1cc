"""Requests to a DynamoDB table with keys ``pk`` and ``sk``, independent of its rows."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from compactor.aws.registry_rows import INDEX, Attributes, names_in, texts
from compactor.aws.services import Thing, answers_of, service_client
from compactor.errors import InvalidInput, TransientStoreError
from compactor.s3.translate import refusal_of

#: Maximum number of inserts per request, a limit of DynamoDB.
MOST_INSERTS = 25
#: Maximum number of concurrent requests.
CONCURRENT = 16
_REFUSED = "ConditionalCheckFailedException"


class Cancelled(Exception):
    """A transaction was cancelled. ``reasons`` has DynamoDB's code for each of its items."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = reasons


class DynamoTable:
    """A table with keys ``pk`` and ``sk``, and the local index ``pending``; thread safe.

    Args:
        table: name of the table.
        client: DynamoDB client.
        pause: waits up to the given seconds before a transaction is retried.
        inserts: the service supports PartiQL.
    """

    def __init__(
        self,
        table: str,
        client: Any = None,
        pause: Callable[[float], None] = lambda longest: time.sleep(random.uniform(0, longest)),  # noqa: S311 - jitter keeps no secret
        *,
        inserts: bool = True,
    ) -> None:
        self._table = table
        self._client = client or service_client("dynamodb", connections=2 * CONCURRENT)
        self._pause = pause
        self._inserts = inserts

    def _insert(self, rows: Sequence[Attributes]) -> list[bool]:
        """Insert rows whose keys do not exist; return for each whether it was inserted.

        PartiQL's INSERT is a put on the condition that the key does not exist; a batch is not a
        transaction. All are False if the service does not support it, the role may not use it, or
        the request failed.
        """
        if not self._inserts:
            return [False] * len(rows)
        statements = [
            {
                "Statement": f'INSERT INTO "{self._table}" VALUE {{{_named(row)}}}',
                "Parameters": list(row.values()),
            }
            for row in rows
        ]
        try:
            with self._answers("insert"):
                answers = self._client.batch_execute_statement(Statements=statements)["Responses"]
        except InvalidInput:
            self._inserts = False
            return [False] * len(rows)
        except TransientStoreError:
            return [False] * len(rows)
        refused = {one["Error"].get("Code") for one in answers if "Error" in one}
        if "AccessDenied" in refused:
            self._inserts = False
        return ["Error" not in one for one in answers]

    def _transact(self, updates: list[dict[str, Any]]) -> None:
        try:
            self._client.transact_write_items(TransactItems=updates)
        except ClientError as error:
            if refusal_of(error).code != "TransactionCanceledException":
                raise
            reasons = error.response.get("CancellationReasons") or []
            if len(reasons) != len(updates):
                raise
            raise Cancelled([str(one.get("Code") or "None") for one in reasons]) from None

    def _get(self, key: Mapping[str, str]) -> Attributes | None:
        with self._answers("get"):
            found = self._client.get_item(
                TableName=self._table, Key=texts(key), ConsistentRead=True
            )
        item: Attributes | None = found.get("Item")
        return item

    def _put(
        self, item: Attributes, condition: str, values: Attributes | None = None
    ) -> Attributes | None:
        """Put an item; return None, or the existing item if the condition is not met."""
        more = {"ExpressionAttributeValues": values} if values else {}
        with self._answers("put"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **more,
                )
            except ClientError as error:
                if refusal_of(error).code != _REFUSED:
                    raise
                there: Any = error.response.get("Item")
            else:
                return None
        # Not every server returns the existing item with the refusal.
        found: Attributes | None = there
        return found or self._get({"pk": item["pk"]["S"], "sk": item["sk"]["S"]}) or item

    def _update(
        self, key: Mapping[str, str], update: str, condition: str, values: Attributes
    ) -> Attributes | None:
        """Update an item and return its new value; None if the condition is not met."""
        more: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
        names = names_in(update + condition)
        if names:
            more["ExpressionAttributeNames"] = names
        with self._answers("update"):
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=texts(key),
                    UpdateExpression=update,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    **more,
                )
            except ClientError as error:
                if refusal_of(error).code != _REFUSED:
                    raise
                return None
        found: Attributes = answer["Attributes"]
        return found

    def _query(self, pk: str, after: str = "") -> Iterator[Attributes]:
        """Yield the pending rows of a partition key, from sort key ``after`` on."""
        condition, values = "pk = :pk", {":pk": {"S": pk}}
        if after:
            condition += f" AND {INDEX} >= :after"
            values[":after"] = {"S": after}
        following: dict[str, Any] = {}
        while True:
            with self._answers("query"):
                found = self._client.query(
                    TableName=self._table,
                    IndexName=INDEX,
                    KeyConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ConsistentRead=True,
                    **following,
                )
            yield from found["Items"]
            if not found.get("LastEvaluatedKey"):
                return
            following = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def _answers(self, what: str) -> AbstractContextManager[None]:
        accepted = "a DynamoDB table with keys pk and sk, and the local index pending"
        thing = Thing("listing", self._table, accepted)
        return answers_of(f"{what} in {self._table}", thing)


def _named(row: Attributes) -> str:
    return ", ".join(f"'{name}': ?" for name in row)
