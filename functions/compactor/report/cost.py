"""What a run really cost, beside what its plans estimated.

Requests are those that the run counted: by its receipts, clean-up and discovery. What a partition
asks once its receipt is written cannot stand in it, and is estimated
(:func:`compactor.discovery.estimate.after_receipt`); so are the transitions of Step Functions, by
the invocations. A discovery in several invocations has the last one's requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from compactor import layout
from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.decoding import decoder
from compactor.errors import ObjectMissing
from compactor.money import RunWork, cost_of, shown, total
from compactor.money.running import (
    PRICE_OF_REQUEST,
    TRANSITIONS_PER_CHILD,
    TRANSITIONS_PER_RUN,
)
from compactor.ports import ObjectStore
from compactor.prices import prices_for
from compactor.runs.partition_receipts import Counts
from compactor.settings.settings import Settings

_ENDINGS = ("spark-result.json", "spark-error.json")
# The lists of work, what discovery saw; report.json and report.html. A report in several calls asks
# a few times more, and is to say the same.
_REPORT = Counter(GET=3, PUT=2)


@dataclass(slots=True)
class RunCost:
    """What a run cost; dollars by list prices.

    Attributes:
        prices_of: the region of these.
        requests: to S3, those that are charged, by kind.
        gb_seconds: of Lambda functions that compacted.
        invocations: of these.
        transitions: of Step Functions.
        vcpu_hours: of Spark.
        gb_hours: likewise.
        dollars: all of it.
        by: the dollars of each kind.
        expected_requests: as the plans of the run's partitions estimated them.
        expected_dollars: of these, and of what else they estimated.
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
    expected_requests: dict[str, int] = field(default_factory=dict)
    expected_dollars: float = 0.0

    @property
    def line(self) -> str:
        """For a person."""
        asked, expected = sum(self.requests.values()), sum(self.expected_requests.values())
        parts = [f"{asked:,} requests"]
        if self.gb_seconds:
            parts.append(f"{self.gb_seconds:,.0f} GB-seconds of Lambda")
        if self.vcpu_hours:
            parts.append(f"{self.vcpu_hours:,.2f} vCPU-hours of Spark")
        planned = f"; estimated {shown(self.expected_dollars)} and {expected:,} requests"
        planned += ", Spark's partitions apart" if self.vcpu_hours else ""
        return f"cost about {shown(self.dollars)}: {', '.join(parts)}{planned}"


class SparkHours(msgspec.Struct, frozen=True):
    """What the Spark job says it used; nothing where it does not know."""

    vcpu_hours: float = 0.0
    gb_hours: float = 0.0


_decode_hours = decoder(SparkHours)


def spark_hours(settings: Settings, run_id: str, store: ObjectStore) -> SparkHours:
    """What the Spark job of a run used, by its own word; nothing where it left none."""
    for name in _ENDINGS:
        try:
            return _decode_hours(store.get(*layout.run_key(settings, run_id, name)))
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
    """The cost of a run.

    Args:
        totals: of its receipts.
        outside: the requests of discovery.
        after: those that the partitions made after their receipts; plans include them.
        partitions: that the report shows.
        clean_up: where it had one.
        hours: of Spark.
        region: whose prices count.
    """
    prices = prices_for(region)
    both = Counter(dict(outside)) + _REPORT + Counter(clean_up.requests if clean_up else {})
    invocations = round(totals.invocations)
    # Where functions compacted, another one has read their receipts.
    both["GET"] += partitions if invocations else 0
    real = RunWork(
        requests=_charged(Counter(totals.requests) + both + Counter(dict(after))),
        gb_seconds=totals.gb_seconds,
        invocations=invocations,
        transitions=_transitions(invocations),
        vcpu_hours=hours.vcpu_hours,
        gb_hours=hours.gb_hours,
    )
    requests = Counter({kind: round(totals.expected.get(kind, 0)) for kind in PRICE_OF_REQUEST})
    # Functions that run on this machine are invoked, and cost nothing.
    estimated = totals.expected.get("gb_seconds", 0.0) if totals.gb_seconds else 0.0
    expected = RunWork(
        requests=_charged(requests + both),
        gb_seconds=estimated,
        invocations=invocations,
        transitions=_transitions(invocations),
        vcpu_hours=hours.vcpu_hours,
        gb_hours=hours.gb_hours,
    )
    figures = cost_of(real, prices)
    return RunCost(
        prices_of=prices.region,
        requests=dict(real.requests),
        gb_seconds=round(real.gb_seconds, 3),
        invocations=invocations,
        transitions=real.transitions,
        vcpu_hours=hours.vcpu_hours,
        gb_hours=hours.gb_hours,
        dollars=round(total(figures), 9),
        by={one.name: round(one.dollars, 9) for one in figures},
        expected_requests=dict(expected.requests),
        expected_dollars=round(total(cost_of(expected, prices)), 9),
    )


def _charged(requests: Mapping[str, int]) -> dict[str, int]:
    return {kind: requests[kind] for kind in sorted(PRICE_OF_REQUEST) if requests.get(kind)}


def _transitions(invocations: int) -> int:
    return TRANSITIONS_PER_RUN + TRANSITIONS_PER_CHILD * invocations if invocations else 0
