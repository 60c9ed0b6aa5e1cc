"""Whether a run pays: the run, the bill of its objects before and after, and the payback."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from compactor.money.run_cost import RunWork, cost_of
from compactor.money.storage import STANDARD, STORAGE_CLASSES, Holding, scan, scan_requests
from compactor.prices import Prices
from compactor.sizes import human_bytes

USUAL_SCANS_PER_MONTH = 30.0
DAYS_PER_MONTH = 365 / 12
#: Heads of :meth:`Verdict.rows`.
HEADS = ("", "Objects", "Bytes", "Storage, a month", "Requests, a scan", "A scan", "To move there")
# What takes longer than this never pays.
_NEVER_DAYS = 3_650.0
_DAYS_PER_YEAR = 365
_LEAST_DOLLARS = 1e-6


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a run costs and saves, by list prices.

    Attributes:
        sources: in their present classes.
        outputs: as the run writes them.
        work: the run's use of AWS.
        prices: of the region.
        scans_per_month: how often everything is read.
        target_class: a class in which sources and outputs are priced too. It does not change the
            verdict: what another class saves is no saving of compaction.
        retention_days: how long sources are kept beside the outputs; None if they are never
            deleted, so that both are paid for every month.
    """

    sources: tuple[Holding, ...]
    outputs: tuple[Holding, ...]
    work: RunWork
    prices: Prices
    scans_per_month: float = USUAL_SCANS_PER_MONTH
    target_class: str | None = None
    retention_days: float | None = None

    @property
    def run(self) -> dict[str, float]:
        """Dollars of the run by kind of cost, with reading the sources from colder classes."""
        standard = (one.in_class(STANDARD) for one in self.sources)
        colder = sum(one.read(self.prices) for one in self.sources)
        colder -= sum(one.read(self.prices) for one in standard)
        costs = cost_of(self.work, self.prices)
        return costs | {"colder classes": colder} if colder else costs

    @property
    def machine_dollars(self) -> float:
        """Dollars of the run on a machine that costs nothing: without functions and workflow."""
        return sum(self.run.values()) - sum(
            cost_of(msgspec.structs.replace(self.work, requests={}), self.prices).values()
        )

    @property
    def both_copies(self) -> float:
        """Dollars to store the sources until retention ends."""
        return self._sources_month * (self.retention_days or 0.0) / DAYS_PER_MONTH

    @property
    def once(self) -> float:
        """One-time dollars: the run and both copies."""
        return sum(self.run.values()) + self.both_copies

    @property
    def saved_requests(self) -> int:
        """Requests that each full scan saves."""
        return scan_requests(self.sources) - scan_requests(self.outputs)

    @property
    def saved_by_scan(self) -> float:
        """Dollars that each full scan saves."""
        return scan(self.sources, self.prices) - scan(self.outputs, self.prices)

    @property
    def saved_by_storage(self) -> float:
        """Dollars of storage saved each month, once retention is over; negative for a loss."""
        outputs = sum(one.month(self.prices) for one in self.outputs)
        return -outputs if self.retention_days is None else self._sources_month - outputs

    @property
    def saved_by_month(self) -> float:
        """Dollars of storage and scans saved each month."""
        return self.saved_by_storage + self.scans_per_month * self.saved_by_scan

    @property
    def payback_days(self) -> float | None:
        """Days until savings equal the one-time costs; None for never, or after ten years."""
        if self.saved_by_month <= 0:
            return None
        days = self.once / self.saved_by_month * DAYS_PER_MONTH
        return days if days <= _NEVER_DAYS else None

    @property
    def headline(self) -> str:
        """PAYS or DOES NOT PAY: after how long, and the dollars once, per scan and per month."""
        if not self.sources:
            return "nothing would be compacted, so nothing is spent and nothing saved"
        scan_saves, month_saves = self.saved_by_scan, self.saved_by_month
        each = f"{_change(-self.once, 'once')}, {_change(scan_saves, 'per scan')}"
        if (scan_saves >= 0) == (month_saves >= 0):
            each += f" and {dollar_text(abs(month_saves))} per month"
        else:
            each += f", {_change(month_saves, 'per month')}"
        scans = f"{self.scans_per_month:g} scan{'' if self.scans_per_month == 1 else 's'} a month"
        days = self.payback_days
        if days is None:
            return f"DOES NOT PAY at {scans}: {each}"
        return f"PAYS after {_duration(days)} at {scans}: {each}"

    @property
    def title(self) -> str:
        """Title of the table of :meth:`rows`."""
        return f"US dollars at the prices of {self.prices.region}"

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Return table rows: sources and outputs, as they are and in the target class."""
        return tuple(
            (
                f"{row['of'].capitalize()} in {row['storage_class']}",
                f"{row['objects']:,}",
                human_bytes(row["bytes"]),
                dollar_text(row["dollars_a_month"]),
                f"{row['requests_a_scan']:,}",
                dollar_text(row["dollars_a_scan"]),
                "" if row["dollars_to_move"] is None else dollar_text(row["dollars_to_move"]),
            )
            for row in self._stored()
        )

    def lines(self) -> tuple[str, ...]:
        """Return what a scan saves, what the run costs by kind, both copies, and warnings."""
        scan_line = f"each full scan saves {self.saved_requests:,} requests"
        lines = (scan_line, self._run_line(), self._copies_line(), *self._warnings())
        return tuple(filter(None, lines))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: amounts in dollars, times in days."""
        return {
            "headline": self.headline,
            "region": self.prices.asked,
            "prices_of": self.prices.region,
            "scans_per_month": self.scans_per_month,
            "target_class": self.target_class,
            "retention_days": self.retention_days,
            "run": self.work.to_dict(),
            "run_dollars": sum(self.run.values()),
            "run_dollars_by_kind": self.run,
            "run_dollars_on_a_machine": self.machine_dollars,
            "once_dollars": self.once,
            "saved_requests_a_scan": self.saved_requests,
            "saved_dollars_a_scan": self.saved_by_scan,
            "saved_dollars_a_month": self.saved_by_month,
            "payback_days": self.payback_days,
            "stored": self._stored(),
        }

    @property
    def _sources_month(self) -> float:
        return sum(one.month(self.prices) for one in self.sources)

    def _stored(self) -> list[dict[str, Any]]:
        sides = {"sources": self.sources, "outputs": self.outputs}
        rows = [self._of(name, holdings, holdings) for name, holdings in sides.items() if holdings]
        if self.target_class is not None:
            for name, holdings in sides.items():
                there = tuple(one.in_class(self.target_class) for one in holdings)
                if holdings:
                    rows.append(self._of(name, holdings, there))
        return rows

    def _of(
        self, name: str, present: tuple[Holding, ...], there: tuple[Holding, ...]
    ) -> dict[str, Any]:
        moves = (one.move(self.target_class or STANDARD, self.prices) for one in present)
        return {
            "of": name,
            "storage_class": ", ".join(dict.fromkeys(one.storage_class for one in there)),
            "objects": sum(one.objects for one in there),
            "bytes": sum(one.bytes for one in there),
            "dollars_a_month": sum(one.month(self.prices) for one in there),
            "requests_a_scan": scan_requests(there),
            "dollars_a_scan": scan(there, self.prices),
            "dollars_to_move": None if there is present else sum(moves),
        }

    def _run_line(self) -> str:
        requests = self.work.requests
        kinds = ", ".join(
            f"{kind}{f' {requests[kind]:,}' if kind in requests else ''} {dollar_text(dollars)}"
            for kind, dollars in self.run.items()
        )
        total = dollar_text(sum(self.run.values()))
        return (
            f"the run costs {total} deployed ({kinds}), {dollar_text(self.machine_dollars)} on this"
            " machine"
        )

    def _copies_line(self) -> str:
        month = dollar_text(self._sources_month)
        if self.retention_days is None:
            return (
                f"delete_after: null, so the sources are stored beside the outputs: {month} a month"
            )
        copies = dollar_text(self.both_copies)
        return f"the sources are stored for {self.retention_days:g} days more: {copies}"

    def _warnings(self) -> tuple[str, ...]:
        unknown = sorted({one.storage_class for one in self.sources} - set(STORAGE_CLASSES))
        line = f"no prices of {', '.join(unknown)} are known here: taken for STANDARD"
        return self.prices.warning, line if unknown else ""


def dollar_text(dollars: float) -> str:
    """Format dollars with two significant digits."""
    amount, sign = abs(dollars), "-" if dollars < 0 else ""
    if not amount:
        return "$0"
    if amount < _LEAST_DOLLARS:
        return f"{sign}<$0.000001"
    digits = 1 - math.floor(math.log10(amount))
    return f"{sign}${round(amount, digits):,.{max(0, digits)}f}"


def _change(saved: float, when: str) -> str:
    return f"{'saves' if saved >= 0 else 'costs'} {dollar_text(abs(saved))} {when}"


def _duration(days: float) -> str:
    if days < 1:
        return "less than a day"
    if days < 2 * _DAYS_PER_YEAR:
        return f"{days:,.0f} day{'' if round(days) == 1 else 's'}"
    return f"{days / _DAYS_PER_YEAR:,.0f} years"
