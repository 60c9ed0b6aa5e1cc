"""The local deployment of events: queue, registry, functions and schedule.

The embedded S3 sends events of every object to its queue; the functions are the deployed ones, in
worker processes, and receive what Lambda's event source would pass them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Self

from compactor_cli.machine.installed import import_roots
from compactor_cli.machine.processes import Child, WorkerPool, python_environment
from compactor_local.definition import ACCOUNT, REGION
from compactor_local.embedded import EmbeddedS3
from compactor_local.executions import MACHINE_ARN, Executions
from compactor_local.invocations import Answer, invoke
from compactor_local.model import EngineError

REGISTRY_TABLE = "pending"
_QUEUE, _DEAD_LETTERS = "events", "events-dead-letters"
_MOST_RECEIVES = 5
_VISIBILITY_SECONDS = 60
# Maximum messages per SQS request; Lambda's event source joins several.
_RECEIVED = 10
_BATCH = 1_000
_BATCH_SECONDS = 0.5
_FUNCTION_SECONDS = 60.0
_MEMORY_MB = 1_024
_EVENTS = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")


@dataclass(frozen=True, slots=True)
class Stream:
    """The configuration of a stream of objects for the functions.

    Attributes:
        input: of the runs that it starts.
        objects: number of pending objects that starts a run,
        size: or their bytes,
        seconds: or the age of the oldest.
    """

    name: str
    input: Mapping[str, Any]
    objects: int
    size: int
    seconds: int

    @property
    def registry(self) -> str:
        """The name of the registry in a run's input."""
        return f"{REGISTRY_TABLE}/{self.name}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as an element of the functions' variable."""
        limits = {"objects": self.objects, "bytes": self.size, "seconds": self.seconds}
        return {"name": self.name, "input": dict(self.input), **limits}


class Ingest:
    """Runs queue, registry and functions within a ``with`` block.

    Args:
        server: with catalog and queue services; the bucket exists.
        bucket: bucket with notifications,
        prefix: of these keys.
        streams: configuration of the streams.
        executions_url: endpoint of Step Functions.
        sweep_seconds: interval of the sweeps.
        log: receives what the functions print.
    """

    def __init__(
        self,
        server: EmbeddedS3,
        bucket: str,
        prefix: str,
        streams: Sequence[Stream],
        *,
        executions_url: str,
        sweep_seconds: float,
        log: IO[bytes] | int,
    ) -> None:
        self._server = server
        self._streams = streams
        self._sweep_seconds = sweep_seconds
        self._stopped = threading.Event()
        self._failures: list[str] = []
        self._redeliveries = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._sqs: Any = server.client("sqs")
        self._make_registry(server.client("dynamodb"))
        self._queue_url = self._make_queue()
        self._subscribe(bucket, prefix)
        environment = python_environment(
            {**os.environ, **server.environment, **self._variables(executions_url)}, *import_roots()
        )
        modules = [f"compactor_handlers.{name}" for name in ("register", "sweep")]
        self._pool = WorkerPool(
            len(modules),
            lambda: Child("compactor_local.worker", modules, environment=environment, log=log),
        )

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._watched, args=(work,), daemon=True)
            for work in (self._register, self._sweep)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._pool.close()

    def redeliver(self) -> None:
        """Deliver the next message twice, as SQS may."""
        self._redeliveries.release()

    def check(self) -> None:
        """Raise the first error of a function so far.

        Raises:
            EngineError: a function failed.
        """
        if self._failures:
            raise EngineError(self._failures[0])

    def undelivered(self) -> int:
        """Return the number of messages in the queue, including those in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=names)
        return sum(int(found["Attributes"][name]) for name in names)

    def is_at_rest(self, executions: Executions) -> bool:
        """Return whether the queue is empty, nothing is pending, and no run is in progress.

        An object leaves the queue as pending, and a run takes it from there: checking for a run
        again at the end rules out that one started in between.

        Raises:
            EngineError: a function failed.
        """
        if executions.running() or self.undelivered():
            return False
        pending = sum(stream["pending_objects"] for stream in self.sweep())
        return not pending and not executions.running()

    def sweep(self) -> Sequence[Mapping[str, Any]]:
        """Run a sweep now; returns what it found for each stream.

        Raises:
            EngineError: the function failed.
        """
        answer = self._call("sweep", {})
        found: Sequence[Mapping[str, Any]] = answer["payload"]["streams"]
        return found

    def _variables(self, executions_url: str) -> dict[str, str]:
        return {
            "REGISTRY_TABLE": REGISTRY_TABLE,
            "STREAMS": json.dumps([one.to_dict() for one in self._streams]),
            "STATE_MACHINE_ARN": MACHINE_ARN,
            "AWS_ENDPOINT_URL_SFN": executions_url,
            "POWERTOOLS_METRICS_NAMESPACE": "s3-compactor",
            "POWERTOOLS_TRACE_DISABLED": "true",
        }

    @staticmethod
    def _make_registry(dynamodb: Any) -> None:
        """Create the registry as the deployment does; docs/events.md documents the keys."""
        names = ("pk", "sk", "pending")
        dynamodb.create_table(
            TableName=REGISTRY_TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in names],
            KeySchema=_keys("pk", "sk"),
            LocalSecondaryIndexes=[
                {
                    "IndexName": "pending",
                    "KeySchema": _keys("pk", "pending"),
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        )

    def _make_queue(self) -> str:
        self._sqs.create_queue(QueueName=_DEAD_LETTERS)
        redrive = {
            "deadLetterTargetArn": _queue_arn(_DEAD_LETTERS),
            "maxReceiveCount": _MOST_RECEIVES,
        }
        made = self._sqs.create_queue(
            QueueName=_QUEUE,
            Attributes={
                "VisibilityTimeout": str(_VISIBILITY_SECONDS),
                "RedrivePolicy": json.dumps(redrive),
            },
        )
        return str(made["QueueUrl"])

    def _subscribe(self, bucket: str, prefix: str) -> None:
        below = {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}}
        queue = {"QueueArn": _queue_arn(_QUEUE), "Events": list(_EVENTS), "Filter": below}
        self._server.client("s3").put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [queue]}
        )

    def _watched(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self._failures.append(str(error))

    def _register(self) -> None:
        """Pass messages to the function, as Lambda's event source does."""
        while not self._stopped.is_set():
            messages = self._received()
            if not messages:
                continue
            answer = self._call("register", {"Records": [_record(one) for one in messages]})
            failed = {one["itemIdentifier"] for one in answer["payload"]["batchItemFailures"]}
            self._delete([one for one in messages if one["MessageId"] not in failed])

    def _received(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        until = time.monotonic() + _BATCH_SECONDS
        while len(found) < _BATCH and time.monotonic() < until and not self._stopped.is_set():
            got = self._sqs.receive_message(
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=_RECEIVED,
                AttributeNames=["All"],
            ).get("Messages", [])
            found += got
            self._redeliver(got)
            if not got:
                self._stopped.wait(_BATCH_SECONDS / 5)
        return found

    def _redeliver(self, messages: Sequence[Mapping[str, Any]]) -> None:
        for one in messages:
            if not self._redeliveries.acquire(blocking=False):
                return
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=one["Body"])

    def _delete(self, messages: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(messages), _RECEIVED):
            entries = [
                {"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]}
                for number, one in enumerate(messages[start : start + _RECEIVED])
            ]
            self._sqs.delete_message_batch(QueueUrl=self._queue_url, Entries=entries)

    def _sweep(self) -> None:
        while not self._stopped.wait(self._sweep_seconds):
            self.sweep()

    def _call(self, function: str, event: Mapping[str, Any]) -> Answer:
        answer = invoke(
            self._pool,
            {
                "function": function,
                "module": f"compactor_handlers.{function}",
                "arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}",
                "event": event,
                "timeout_seconds": _FUNCTION_SECONDS,
                "memory_mb": _MEMORY_MB,
            },
        )
        if "failure" in answer:
            error = f"{answer['failure']['errorType']}: {answer['failure']['errorMessage']}"
            raise EngineError(f"the function {function} failed: {error}")
        return answer


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def _queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def _record(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message in the form of a Lambda event."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": _queue_arn(_QUEUE),
        "awsRegion": REGION,
    }
