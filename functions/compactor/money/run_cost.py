"""What a run costs, from its actual or expected use of AWS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from compactor.prices import Prices

# By the names under which a store counts requests. HEAD is charged like GET; deleting and aborting
# are free.
_PRICE_OF_REQUEST = {"GET": "s3.get", "HEAD": "s3.get", "LIST": "s3.list", "PUT": "s3.put"}

#: State transitions of a child execution of either map: its start, the call, the choice, and the
#: state it keeps. And of a run: its own states, including those of a clean-up.
TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN = 4, 14


class RunWork(msgspec.Struct, frozen=True):
    """A run's use of AWS.

    Attributes:
        requests: to S3, by the names under which a store counts them.
        gb_seconds: of Lambda functions.
        invocations: of Lambda functions.
        architecture: of Lambda functions and of Spark: ``arm64`` or ``x86_64``.
        transitions: of Step Functions. Each child execution of the Distributed Map is a Standard
            workflow, and is charged for its own.
        vcpu_hours: of Spark on EMR Serverless.
        gb_hours: of Spark on EMR Serverless.
    """

    requests: Mapping[str, int] = msgspec.field(default_factory=dict)
    gb_seconds: float = 0.0
    invocations: int = 0
    architecture: str = "arm64"
    transitions: int = 0
    vcpu_hours: float = 0.0
    gb_hours: float = 0.0

    def __add__(self, other: RunWork) -> RunWork:
        """Return the sum of both, with the architecture of the first."""
        names = self.requests.keys() | other.requests.keys()
        return RunWork(
            {name: self.requests.get(name, 0) + other.requests.get(name, 0) for name in names},
            self.gb_seconds + other.gb_seconds,
            self.invocations + other.invocations,
            self.architecture,
            self.transitions + other.transitions,
            self.vcpu_hours + other.vcpu_hours,
            self.gb_hours + other.gb_hours,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document, without requests that are free."""
        return {
            "requests": charged_requests(self.requests),
            "gb_seconds": round(self.gb_seconds, 3),
            "invocations": self.invocations,
            "transitions": self.transitions,
            "vcpu_hours": round(self.vcpu_hours, 6),
            "gb_hours": round(self.gb_hours, 6),
        }


def charged_requests(requests: Mapping[str, int]) -> dict[str, int]:
    """Return the requests that are charged, by kind, without zeros."""
    return {kind: requests[kind] for kind in sorted(_PRICE_OF_REQUEST) if requests.get(kind)}


def cost_of(work: RunWork, prices: Prices) -> dict[str, float]:
    """Return the dollars for each kind of cost, without those that are zero."""
    dollars = {
        kind: count * prices.of(_PRICE_OF_REQUEST[kind])
        for kind, count in charged_requests(work.requests).items()
    }
    dollars |= {
        "Lambda": work.gb_seconds * prices.of(f"lambda.gb_second.{work.architecture}"),
        "Lambda invocations": work.invocations * prices.of("lambda.request"),
        "Step Functions": work.transitions * prices.of("states.transition"),
        "Spark": work.vcpu_hours * prices.of(f"emr_serverless.vcpu_hour.{work.architecture}")
        + work.gb_hours * prices.of(f"emr_serverless.gb_hour.{work.architecture}"),
    }
    return {kind: amount for kind, amount in dollars.items() if amount}
