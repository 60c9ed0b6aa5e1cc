"""The local deployment of events: queue, registry, schedule, and the runs they start.

The embedded S3 sends events of every object to its queue. What the deployed functions do with them
is done here by a thread of this process, and the runs that they start by another.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from compactor.aws.registry import DynamoRegistry
from compactor.aws.registry_rows import create_table
from compactor.clock import SystemClock
from compactor.registry.registering import register
from compactor.registry.registry_ports import ExecutionState, Started
from compactor.registry.starting import start_due
from compactor.registry.streams import Stream
from compactor.settings.settings import Settings
from compactor_local import EngineError
from compactor_local.definition import ACCOUNT, REGION
from compactor_local.embedded import EmbeddedS3

REGISTRY_TABLE = "pending"
_QUEUE = "events"
# Maximum messages per SQS request; a batch joins several, as Lambda's event source does.
_RECEIVED = 10
_BATCH = 1_000
_BATCH_SECONDS = 0.5


class Runs:
    """Runs of one process, one at a time in the order of their start, within a ``with`` block.

    Implements :class:`compactor.registry.registry_ports.Executions`; the name is the ARN.

    Args:
        carry_out: runs one to its end, by name and settings; an exception fails it.
    """

    def __init__(self, carry_out: Callable[[str, Settings], None]) -> None:
        self._carry_out = carry_out
        self._states: dict[str, ExecutionState] = {}
        self._waiting: queue.SimpleQueue[tuple[str, Settings] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.put(None)
        self._thread.join()

    @property
    def count(self) -> int:
        """Number of runs so far."""
        return len(self._states)

    def running(self) -> bool:
        """Return whether a run is in progress or waits."""
        return ExecutionState.RUNNING in self._states.values()

    def start(self, name: str, document: str) -> Started:
        """Start a run once: a second call with the same name does nothing."""
        if name in self._states:
            return Started(name, None)
        self._states[name] = ExecutionState.RUNNING
        self._waiting.put((name, Settings.from_input(json.loads(document))))
        return Started(name, time.time())

    def state_of(self, arn: str) -> ExecutionState:
        """Return the state of a run."""
        return self._states.get(arn, ExecutionState.ENDED)

    def _work(self) -> None:
        while (order := self._waiting.get()) is not None:
            name, settings = order
            state = ExecutionState.ENDED
            try:
                self._carry_out(name, settings)
            except Exception as error:
                self.failures.append(f"run {name} failed: {type(error).__name__}: {error}")
                state = ExecutionState.FAILED
            self._states[name] = state


class Ingest:
    """Runs queue, registry and schedule within a ``with`` block.

    Args:
        server: with catalog and queue services; the environment points to it.
        bucket: bucket with notifications, which exists,
        prefix: of these keys.
        streams: what becomes of the objects.
        runs: starts the runs of the streams.
        sweep_seconds: interval of the sweeps.
    """

    def __init__(
        self,
        server: EmbeddedS3,
        bucket: str,
        prefix: str,
        streams: Sequence[Stream],
        runs: Runs,
        *,
        sweep_seconds: float,
    ) -> None:
        self._streams = streams
        self._runs = runs
        self._sweep_seconds = sweep_seconds
        self._registered = 0
        self._pending = 0
        self._failure = ""
        self._stopped = threading.Event()
        self._sqs: Any = server.client("sqs")
        dynamodb = server.client("dynamodb")
        create_table(dynamodb, REGISTRY_TABLE)
        self._queue_url = self._sqs.create_queue(QueueName=_QUEUE)["QueueUrl"]
        subscription = {
            "QueueArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{_QUEUE}",
            "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"],
            "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}},
        }
        server.client("s3").put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [subscription]}
        )
        # moto's PartiQL cannot insert; a failed request would be retried with growing pauses.
        self._registry = DynamoRegistry(REGISTRY_TABLE, dynamodb, inserts=False)
        now = SystemClock().now()
        self._born = {one.name: self._registry.claim(one.identity, now) for one in streams}
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def has_ingested(self, objects: int) -> bool:
        """Return whether so many objects have been registered, and none waits or is in a run.

        Raises:
            EngineError: events could not be registered, or runs not be started.
        """
        if self._failure:
            raise EngineError(self._failure)
        return self._registered >= objects and not self._pending and not self._runs.running()

    def _work(self) -> None:
        swept = 0.0
        try:
            while not self._stopped.is_set():
                self._register()
                if time.monotonic() - swept >= self._sweep_seconds:
                    self._pending = self._sweep()
                    swept = time.monotonic()
        except Exception as error:
            self._failure = f"events failed: {type(error).__name__}: {error}"

    def _register(self) -> None:
        """Register the objects that the queue's messages name."""
        messages = self._received()
        bodies = [(one["MessageId"], one["Body"]) for one in messages]
        done = register(bodies, self._streams, self._registry, SystemClock().now())
        for start in range(0, len(messages), _RECEIVED):
            entries = [
                {"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]}
                for number, one in enumerate(messages[start : start + _RECEIVED])
                if one["MessageId"] not in done.failed
            ]
            if entries:
                self._sqs.delete_message_batch(QueueUrl=self._queue_url, Entries=entries)
        # Pending before it counts as registered, so that it never seems to be ingested.
        self._pending += done.new
        self._registered += done.new

    def _received(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        until = time.monotonic() + _BATCH_SECONDS
        while len(messages) < _BATCH and time.monotonic() < until and not self._stopped.is_set():
            received = self._sqs.receive_message(
                QueueUrl=self._queue_url, MaxNumberOfMessages=_RECEIVED
            ).get("Messages", [])
            messages += received
            if not received:
                self._stopped.wait(_BATCH_SECONDS / 5)
        return messages

    def _sweep(self) -> int:
        """Start the runs that are due; returns how many objects are pending."""
        now = SystemClock().now()
        return sum(
            start_due(one, self._registry, self._runs, self._born[one.name], now).waiting.objects
            for one in self._streams
        )
