"""What a Lambda invocation uses: logger, metrics, deadline and the process's store."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any, Protocol

from aws_lambda_powertools import Logger, Metrics

from compactor.process import memory as worker_process
from compactor.s3.store import S3Store, make_client

SERVICE = "s3-compactor"
NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", SERVICE)
_NO_METRICS = "No application metrics to publish"
Event = dict[str, Any]

logger = Logger(service=SERVICE)
metrics = Metrics(namespace=NAMESPACE, service=SERVICE)
# A call that found nothing to do has none.
warnings.filterwarnings("ignore", _NO_METRICS)

worker_process.tune()


class LambdaContext(Protocol):
    """The part of Lambda's context object that the functions use."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda stops the function."""
        ...


class LambdaDeadline:
    """The deadline of an invocation, from Lambda's context."""

    def __init__(self, context: LambdaContext) -> None:
        self._context = context

    def remaining_seconds(self) -> float:
        """Return the seconds until Lambda stops the function."""
        return self._context.get_remaining_time_in_millis() / 1000


@cache
def kept_store(threads: int, budget_bytes: int) -> S3Store:
    """Return the process's store, whose connections are reused by later invocations.

    Args:
        threads: maximum number of connections.
        budget_bytes: maximum number of bytes read ahead.
    """
    return S3Store(make_client(connections=threads), threads=threads, budget_bytes=budget_bytes)
