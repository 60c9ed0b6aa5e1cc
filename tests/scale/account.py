"""Calls the handlers as the state machine does, one invocation at a time, in virtual time."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from botocore.httpsession import URLLib3Session

from compactor import invocation
from compactor.clock import SystemClock
from compactor.ports import ObjectStore
from compactor.s3.store import S3Store, make_client
from compactor_handlers import compact_partition, discover, plan_clean_up, report, runtime
from tests.scale.bodies import SkippedBodies
from tests.scale.keys import Keys
from tests.scale.meter import Asked, Meter, Used
from tests.scale.services import FUNCTIONS, Function, Services
from tests.scale.wire import Wire

HANDLERS: dict[str, Callable[[dict[str, Any], Any], dict[str, Any]]] = {
    "discover": discover.handler,
    "compact_partition": compact_partition.handler,
    "plan_clean_up": plan_clean_up.handler,
    "report": report.handler,
}
# 4 January 2026: two days behind the youngest object.
EPOCH = 1_767_484_800.0
# A group of a share counts as hundreds of seconds: no reserve for the next one may stop it.
_ENDLESS_MS = 10**12
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "scale",
    "AWS_SECRET_ACCESS_KEY": "scale",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    # Not by a proxy of this machine.
    "NO_PROXY": "*",
    "no_proxy": "*",
    "POWERTOOLS_METRICS_DISABLED": "true",
    "POWERTOOLS_TRACE_DISABLED": "true",
    "COMPACTOR_SPARK": "emr_serverless",
}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a function.

    Attributes:
        used: what it took; of a sample, as the whole would.
        event, answer: the state before and after, as JSON has them.
        sample: what the sampled stretch of it took, once.
    """

    function: Function
    used: Used
    event: dict[str, Any]
    answer: dict[str, Any]
    sample: Used = field(default_factory=Used)

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return self.used.seconds(self.function)

    @property
    def payload_bytes(self) -> int:
        """The larger of what went in and what came out."""
        return max(size_of(self.event), size_of(self.answer))


def size_of(state: object) -> int:
    """Bytes of a state as Step Functions keeps it."""
    return len(json.dumps(state, separators=(",", ":")).encode())


@dataclass(slots=True)
class Context:
    """Lambda's context, whose time is virtual."""

    meter: Meter
    services: Services
    endless: bool
    function_name: str
    memory_limit_in_mb: int
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:scale"
    aws_request_id: str = "scale"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda would end it; never negative."""
        if self.endless:
            return _ENDLESS_MS
        return max(0, int(1000 * (self.services.functions.seconds - self.meter.seconds)))


def invoked(name: str, event: dict[str, Any], context: Context) -> dict[str, Any]:
    """What a handler answers; its metrics are told to nobody."""
    with redirect_stdout(io.StringIO()):
        return HANDLERS[name](event, context)


@contextmanager
def _no_end(endless: bool) -> Iterator[None]:
    if not endless:
        yield
        return
    with mock.patch.object(
        runtime.WorkingTime, "remaining_seconds", invocation.LambdaDeadline.remaining_seconds
    ):
        yield


@dataclass(slots=True)
class Account:
    """An account with the functions, and their store.

    Attributes:
        at: virtual time at the begin of the next invocation; UNIX seconds.
    """

    store: S3Store
    wire: Wire
    services: Services
    at: float = EPOCH
    meter: Meter | None = field(default=None)

    def call(
        self,
        name: str,
        event: dict[str, Any],
        weight: float = 1.0,
        sampled: Callable[[Asked], bool] = lambda asked: False,
        *,
        endless: bool = False,
    ) -> Invocation:
        """Invoke a function; weight and sample as :class:`Meter` takes them.

        Args:
            name: of the function.
            event: what it is given.
            weight: how often the sampled stretch counts.
            sampled: tells the requests that begin and end it.
            endless: its time never runs out.
        """
        function = FUNCTIONS[name]
        self.meter = self.wire.meter = meter = Meter(function, self.services, weight, sampled)
        context = Context(meter, self.services, endless, name, function.memory_mb)
        try:
            with _no_end(endless):
                answer = invoked(name, event, context)
        finally:
            self.meter = self.wire.meter = None
        made = Invocation(function, meter.total(), event, answer, meter.sample())
        self.at += made.seconds
        return made

    def now(self) -> float:
        """Virtual time; UNIX seconds."""
        return self.at + (self.meter.seconds if self.meter else 0.0)


@contextmanager
def account(keys: Keys, services: Services) -> Iterator[Account]:
    """The functions on an S3 of formulas."""
    with mock.patch.dict(os.environ, _ENVIRONMENT):
        client = make_client(connections=64)
        wire = Wire(keys, services.s3.page_keys)
        store = S3Store(client, threads=64)
        here = Account(store, wire, services)
        with (
            mock.patch.object(URLLib3Session, "send", wire.send),
            on_store(store, here.now),
            bodies_skipped(lambda: here.meter, services),
        ):
            yield here


@contextmanager
def on_store(store: ObjectStore, now: Callable[[], float]) -> Iterator[None]:
    """Let the handlers work on this store, at this time, and tell nobody."""
    told = invocation.logger.log_level
    invocation.logger.setLevel(logging.CRITICAL)
    with (
        mock.patch.dict(runtime._known_traits, clear=True),
        mock.patch.object(runtime, "kept_store", return_value=store),
        mock.patch.object(SystemClock, "now", side_effect=now),
    ):
        try:
            yield
        finally:
            invocation.logger.setLevel(told)


@contextmanager
def bodies_skipped(meter: Callable[[], Meter | None], services: Services) -> Iterator[None]:
    """Let no body of a source be read."""
    stand_in = SkippedBodies(meter, services)
    with mock.patch("compactor.partition.work.store", stand_in):
        yield
