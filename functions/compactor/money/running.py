"""What a run costs, from its actual or expected use of AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from compactor.money.figures import Figure, charged, price_of
from compactor.prices import Prices

#: Price of each kind of request, by the names under which a store counts them. HEAD is charged like
#: GET; deleting and aborting are free.
PRICE_OF_REQUEST = {"GET": "s3.get", "HEAD": "s3.get", "LIST": "s3.list", "PUT": "s3.put"}

#: State transitions of a child execution of either map: its start, the call, the choice, and the
#: state it keeps. And of a run: its own states, including those of a clean-up.
TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN = 4, 14

# What an account may be charged for requests besides: the price's name, and which requests.
_SIDE_CHARGES = {
    "KMS, for keys without a bucket key": ("kms.request", ("GET", "PUT")),
    "data events of CloudTrail": ("cloudtrail.data_event", tuple(PRICE_OF_REQUEST)),
    "S3 Protection of GuardDuty": ("guardduty.s3_event", tuple(PRICE_OF_REQUEST)),
}


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
            "requests": self.priced,
            "gb_seconds": round(self.gb_seconds, 3),
            "invocations": self.invocations,
            "transitions": self.transitions,
            "vcpu_hours": round(self.vcpu_hours, 6),
            "gb_hours": round(self.gb_hours, 6),
        }

    @property
    def priced(self) -> dict[str, int]:
        """The requests that are charged, by name."""
        return {name: self.requests.get(name, 0) for name in sorted(PRICE_OF_REQUEST)}


def cost_of(work: RunWork, prices: Prices) -> tuple[Figure, ...]:
    """Return a figure for each kind of cost, without those that are zero."""
    return tuple(one for one in _figures(work, prices) if one.dollars)


def side_charges(work: RunWork, prices: Prices) -> tuple[Figure, ...]:
    """Return what the requests cost in accounts that encrypt or watch each, if not zero."""
    figures = (
        charged(what, sum(work.requests.get(one, 0) for one in kinds), "requests", price)
        for what, (name, kinds) in _SIDE_CHARGES.items()
        if (price := prices.by_name.get(name)) is not None
    )
    return tuple(one for one in figures if one.dollars)


def _figures(work: RunWork, prices: Prices) -> Iterator[Figure]:
    for name, count in work.priced.items():
        yield charged(name, count, f"{name} requests", price_of(prices, PRICE_OF_REQUEST[name]))
    compute = price_of(prices, f"lambda.gb_second.{work.architecture}")
    yield charged("Lambda", work.gb_seconds, "GB-seconds", compute)
    calls = price_of(prices, "lambda.request")
    yield charged("Lambda, invocations", work.invocations, "invocations", calls)
    transition = price_of(prices, "states.transition")
    yield charged("Step Functions", work.transitions, "state transitions", transition)
    vcpu, memory = (
        price_of(prices, f"emr_serverless.{one}.{work.architecture}")
        for one in ("vcpu_hour", "gb_hour")
    )
    yield charged("Spark, processors", work.vcpu_hours, "vCPU-hours", vcpu)
    yield charged("Spark, memory", work.gb_hours, "GB-hours", memory)
