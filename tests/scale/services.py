"""What S3, Lambda and Step Functions allow, how long they take, and what they cost.

Limits are those of the services' documentation (docs/aws.md has the pages); latencies are assumed,
and are parameters. Prices: us-east-1, dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Lambda gives processors in proportion to memory, and one at this size.
_MB_PER_PROCESSOR = 1_769


@dataclass(frozen=True, slots=True)
class S3Service:
    """S3, for one bucket.

    Attributes:
        gets_per_second: of one prefix that S3 has given a partition of its own.
        list_seconds: until a page of a LIST is there.
        seconds: until any other request is answered.
    """

    gets_per_second: float = 5_500.0
    list_seconds: float = 0.1
    seconds: float = 0.05
    page_keys: int = 1_000


@dataclass(frozen=True, slots=True)
class Function:
    """One Lambda function.

    Attributes:
        lanes: requests that it has under way beside each other, at least, where it uses threads.
    """

    name: str
    memory_mb: int
    lanes: int

    @property
    def processors(self) -> float:
        """That its Python code has: at most one, for there is one interpreter lock."""
        return min(1.0, self.memory_mb / _MB_PER_PROCESSOR)


#: By name, with the memory that the stack gives them (cdk/functions.py).
FUNCTIONS: Mapping[str, Function] = {
    one.name: one
    for one in (
        Function("discover", 1_769, lanes=16),
        Function("compact_partition", 3_008, lanes=1),
        Function("plan_clean_up", 1_024, lanes=3),
        Function("report", 1_769, lanes=64),
    )
}


@dataclass(frozen=True, slots=True)
class LambdaService:
    """Lambda, for one account.

    Attributes:
        seconds: that an invocation may take.
        concurrency: invocations at once.
        start_seconds: of an invocation that finds no process waiting.
    """

    seconds: float = 900.0
    concurrency: int = 1_000
    start_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class StepFunctionsService:
    """Step Functions, for one account."""

    starts_per_second: float = 100.0
    most_children: int = 10_000
    payload_bytes: int = 256 * 1024
    history_events: int = 25_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars, us-east-1, arm64."""

    get: float = 0.0000004
    put: float = 0.000005
    gb_second: float = 0.0000133334
    invocation: float = 0.0000002
    transition: float = 0.000025

    def request(self, kind: str) -> float:
        """One request; deletes are free."""
        return {"GET": self.get, "HEAD": self.get, "DELETE": 0.0}.get(kind, self.put)


@dataclass(frozen=True, slots=True)
class Services:
    """All of it."""

    s3: S3Service = field(default_factory=S3Service)
    functions: LambdaService = field(default_factory=LambdaService)
    workflows: StepFunctionsService = field(default_factory=StepFunctionsService)
    prices: Prices = field(default_factory=Prices)
