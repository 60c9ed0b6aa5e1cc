"""The workers of a run, as far as they are known before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from compactor.discovery.speed import MEASURED_PROCESSORS

# Lambda gives processors in proportion to memory, and one at this size ("Configure Lambda function
# memory" in its developer guide).
_MB_PER_PROCESSOR = 1_769


def processors_of(memory_mb: int) -> float:
    """How many processors a Lambda function of so many MB has."""
    return memory_mb / _MB_PER_PROCESSOR


@dataclass(frozen=True, slots=True)
class Fleet:
    """What the workers are.

    Attributes:
        processors: that one worker has.
    """

    processors: float = MEASURED_PROCESSORS
