"""One invocation of a Lambda function: logger, metrics, tracing and the time that is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from aws_lambda_powertools import Logger, Metrics

from compactor.process import memory as worker_process
from compactor.s3.store import S3Store, make_client

SERVICE = "s3-compactor"
NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", SERVICE)
Event = dict[str, Any]
Handler = Callable[[Event, Any], dict[str, Any]]

logger = Logger(service=SERVICE)
metrics = Metrics(namespace=NAMESPACE, service=SERVICE)

worker_process.tune()


class LambdaContext(Protocol):
    """The part of Lambda's context object that is used here."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is stopped."""
        ...


class LambdaDeadline:
    """The end of the invocation, by Lambda's context."""

    def __init__(self, context: LambdaContext) -> None:
        self._context = context

    def remaining_seconds(self) -> float:
        """Seconds until the function is stopped."""
        return self._context.get_remaining_time_in_millis() / 1000


def traced(handler: Handler) -> Handler:
    """Trace a handler with X-Ray inside Lambda; elsewhere the library is not even imported."""
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return handler
    from aws_lambda_powertools import Tracer  # noqa: PLC0415 - takes 0.2 s to import

    wrapped: Handler = Tracer(service=SERVICE).capture_lambda_handler(handler)
    return wrapped


@cache
def kept_store(threads: int, budget_bytes: int) -> S3Store:
    """The process's store: its connections outlive the invocation, so that a warm call opens none.

    Args:
        threads: connections, at most.
        budget_bytes: read ahead at most.
    """
    return S3Store(make_client(connections=threads), threads=threads, budget_bytes=budget_bytes)
