"""State that the event handlers keep between calls: streams, registry and state machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from aws_lambda_powertools.metrics import MetricUnit

from compactor.aws.executions import StateMachine
from compactor.errors import InvalidInput
from compactor.invocation import logger, metrics
from compactor.registry.registry_ports import Executions, Registry
from compactor.registry.starting import Looked, start_due
from compactor.registry.streams import Stream, parse_streams
from compactor.runs.event_listing import registry_at

# Environment variables: JSON list of streams; DynamoDB table; ARN of the compaction workflow.
STREAMS, TABLE, MACHINE = "STREAMS", "REGISTRY_TABLE", "STATE_MACHINE_ARN"


@dataclass(frozen=True, slots=True)
class Office:
    """The streams and services that the function's environment names.

    Attributes:
        born: text that is unique to each stream's registration, by the stream's name.
    """

    streams: tuple[Stream, ...]
    registry: Registry
    executions: Executions
    born: dict[str, str]

    def start_due(self, stream: Stream, now: float) -> Looked:
        """Start a run of a stream if one is due, and log it."""
        looked = start_due(stream, self.registry, self.executions, self.born[stream.name], now)
        started = looked.started is not None
        metrics.add_metric(name="ExecutionsStarted", unit=MetricUnit.Count, value=int(started))
        if looked.started is not None:
            logger.info("started", stream=stream.name, execution=looked.started.arn)
        return looked


def office(now: float) -> Office:
    """Return what the environment names. Each process claims a stream once.

    Args:
        now: UNIX seconds.

    Raises:
        InvalidInput: the environment is invalid, or a stream belongs to another source.
    """
    return _office(_named(TABLE), _named(STREAMS), _named(MACHINE), int(now))


def _named(variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise InvalidInput(variable, value, "a value in the function's environment")
    return value


_offices: dict[tuple[str, str, str], Office] = {}


def _office(table: str, streams: str, machine: str, now: int) -> Office:
    place = table, streams, machine
    if place not in _offices:
        parsed, registry = parse_streams(streams, table), registry_at(table)
        born = {one.name: registry.claim(one.identity, float(now)) for one in parsed}
        _offices[place] = Office(parsed, registry, _machine(machine), born)
    return _offices[place]


@cache
def _machine(arn: str) -> StateMachine:
    return StateMachine(arn)


def forget() -> None:
    """Clear the caches, so that the environment is re-read. For tests."""
    _offices.clear()
    _machine.cache_clear()
    registry_at.cache_clear()
