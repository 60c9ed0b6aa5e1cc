"""What a run cost.

Requests are those that the run counted, in its receipts, clean-up and discovery. A partition's
requests after writing its receipt cannot be in it, and are estimated
(:func:`compactor.money.estimate.after_receipt`). Step Functions transitions are estimated from
invocations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.decoding import decoder
from compactor.errors import ObjectMissing
from compactor.money import (
    TRANSITIONS_PER_CHILD,
    TRANSITIONS_PER_RUN,
    RunWork,
    charged_requests,
    cost_of,
    dollar_text,
)
from compactor.partition.receipts import Counts
from compactor.ports import ObjectStore
from compactor.prices import prices_for
from compactor.settings.settings import Settings

_ENDINGS = ("spark-result.json", "spark-error.json")
# GETs of the work lists, discovery's summary and the history of runs; PUTs of that and report.json.
# A report in several calls makes a few more, but must show the same figures.
_REPORT = Counter(GET=4, PUT=2)


@dataclass(slots=True)
class RunCost:
    """What a run cost, in dollars at list prices.

    Attributes:
        prices_of: region of the prices.
        requests: charged requests to S3, by kind.
        gb_seconds: of Lambda functions that compacted.
        invocations: of these.
        transitions: of Step Functions.
        vcpu_hours: of Spark.
        gb_hours: of Spark.
        dollars: in total.
        by: dollars by kind of cost.
    """

    prices_of: str = ""
    requests: dict[str, int] = field(default_factory=dict)
    gb_seconds: float = 0.0
    invocations: int = 0
    transitions: int = 0
    vcpu_hours: float = 0.0
    gb_hours: float = 0.0
    dollars: float = 0.0
    by: dict[str, float] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """A summary in one line."""
        parts = [f"{sum(self.requests.values()):,} requests"]
        if self.gb_seconds:
            parts.append(f"{self.gb_seconds:,.0f} GB-seconds of Lambda")
        if self.vcpu_hours:
            parts.append(f"{self.vcpu_hours:,.2f} vCPU-hours of Spark")
        basis = "deployed" if self.gb_seconds else "on this machine"
        return f"cost about {dollar_text(self.dollars)} {basis}: {', '.join(parts)}"


class SparkHours(msgspec.Struct, frozen=True):
    """What the Spark job reports that it used; zero if unknown."""

    vcpu_hours: float = 0.0
    gb_hours: float = 0.0


_decode_hours = decoder(SparkHours)


def spark_hours(settings: Settings, run_id: str, store: ObjectStore) -> SparkHours:
    """Return what a run's Spark job reports that it used; zero if it left no report."""
    for name in _ENDINGS:
        try:
            return _decode_hours(store.get(*settings.layout.run(run_id, name)))
        except (ObjectMissing, msgspec.MsgspecError):
            continue
    return SparkHours()


def cost_of_run(
    totals: Counts,
    outside: Mapping[str, int],
    after: Mapping[str, int],
    *,
    partitions: int,
    clean_up: CleanUpReport | None,
    hours: SparkHours,
    region: str,
) -> RunCost:
    """Return the cost of a run.

    Args:
        totals: of its receipts.
        outside: requests of discovery.
        after: requests of partitions after their receipts.
        partitions: number of partitions in the report.
        clean_up: if the run had a clean-up.
        hours: of Spark.
        region: whose prices apply.
    """
    prices = prices_for(region)
    both = Counter(dict(outside)) + _REPORT + Counter(clean_up.requests if clean_up else {})
    invocations = round(totals.invocations)
    # If Lambda functions compacted, another function has read each partition's receipt.
    both["GET"] += partitions if invocations else 0
    real = RunWork(
        requests=charged_requests(Counter(totals.requests) + both + Counter(dict(after))),
        gb_seconds=totals.gb_seconds,
        invocations=invocations,
        transitions=_transitions(invocations),
        vcpu_hours=hours.vcpu_hours,
        gb_hours=hours.gb_hours,
    )
    dollars = cost_of(real, prices)
    return RunCost(
        prices_of=prices.region,
        requests=dict(real.requests),
        gb_seconds=round(real.gb_seconds, 3),
        invocations=invocations,
        transitions=real.transitions,
        vcpu_hours=hours.vcpu_hours,
        gb_hours=hours.gb_hours,
        dollars=round(sum(dollars.values()), 9),
        by={kind: round(amount, 9) for kind, amount in dollars.items()},
    )


def _transitions(invocations: int) -> int:
    return TRANSITIONS_PER_RUN + TRANSITIONS_PER_CHILD * invocations if invocations else 0
