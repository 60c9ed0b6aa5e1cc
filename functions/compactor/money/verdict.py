"""Whether a run pays: what it costs, what each scan and month saves afterwards, and when it pays.

Compaction is compared with the cheaper alternative: leaving the sources in their classes, or having
lifecycle move them, as they are, to the outputs' class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from compactor.money.classes import months_by_class, retrieval_of
from compactor.money.figures import Figure, price_text, shown, total
from compactor.money.running import RunWork, cost_of, side_charges
from compactor.money.shapes import Shape
from compactor.money.statement import (
    athena_of,
    basis_of,
    headline_of,
    lines_of,
    rows_of,
    scans_a_month,
)
from compactor.money.storage import (
    DAYS_PER_MONTH,
    a_month,
    known,
    to_delete_early,
    to_move,
    to_read_once,
    to_scan,
)
from compactor.planning.query_seconds import ATHENA, seconds
from compactor.prices import Price, Prices
from compactor.settings.storage_classes import MINIMUM_DAYS, STANDARD

# The alternatives are compared by their costs over this time.
_COMPARED_MONTHS = 12
# If storage alone takes longer than this to pay, the verdict says never.
_NEVER_DAYS = 3_650.0
USUAL_SCANS_PER_MONTH = 30.0
USUAL_RETENTION_DAYS = 30.0


class Way(msgspec.Struct, frozen=True):
    """The cost of one alternative.

    Attributes:
        once: one-time costs.
        month: storage for a month.
        scan: one scan of everything.
    """

    once: tuple[Figure, ...]
    month: tuple[Figure, ...]
    scan: tuple[Figure, ...]

    def a_month(self, scans_per_month: float) -> float:
        """Return the dollars for a month of storage and scans."""
        return total(self.month) + scans_per_month * total(self.scan)

    def over(self, months: float, scans_per_month: float) -> float:
        """Return the cost in dollars over a number of months."""
        return total(self.once) + months * self.a_month(scans_per_month)


class Verdict(msgspec.Struct, frozen=True):
    """What a run costs and saves; see :func:`verdict`.

    Attributes:
        before: the sources, in the class in which they would stay without compaction.
        after: the outputs, in their target class.
        left: costs without compaction.
        compacted: costs with it; ``once`` is the run, moving the outputs, and storing both copies.
        work: the run's use of AWS.
        run: the part of the one-time costs that is the run itself.
        prices: of the region.
        scans_per_month: how often everything is read.
        target_class: of the outputs.
        retention_days: how long the sources are kept in addition to the outputs; None for ever.
        seconds: modelled duration of a scan of the sources, and of the outputs.
    """

    before: Shape
    after: Shape
    left: Way
    compacted: Way
    work: RunWork
    run: tuple[Figure, ...]
    prices: Prices
    scans_per_month: float
    target_class: str
    retention_days: float | None
    seconds: tuple[float, float]

    @property
    def once(self) -> float:
        """One-time costs in dollars, in excess of those without compaction."""
        return total(self.compacted.once) - total(self.left.once)

    @property
    def saved_by_scan(self) -> float:
        """Dollars that each scan saves."""
        return total(self.left.scan) - total(self.compacted.scan)

    @property
    def saved_by_storage(self) -> float:
        """Dollars of storage saved each month, once retention is over."""
        return total(self.left.month) - total(self.compacted.month)

    @property
    def saved_by_month(self) -> float:
        """Dollars of storage and scans saved each month."""
        return self.saved_by_storage + self.scans_per_month * self.saved_by_scan

    @property
    def payback_days(self) -> float | None:
        """Days until savings equal the one-time costs; None for never."""
        return _days(self.once, self.saved_by_month)

    @property
    def payback_scans(self) -> int | None:
        """Scans that save the one-time costs, without storage; None for never."""
        if self.once <= 0:
            return 0
        return math.ceil(self.once / self.saved_by_scan) if self.saved_by_scan > 0 else None

    @property
    def storage_days(self) -> float | None:
        """Days until storage alone saves the one-time costs; None if never, or after ten years."""
        found = _days(self.once, self.saved_by_storage)
        return found if found is not None and found <= _NEVER_DAYS else None

    @property
    def aside(self) -> tuple[Figure, ...]:
        """What the run's requests cost besides in accounts that encrypt or watch each of them."""
        return side_charges(self.work, self.prices)

    @property
    def pays(self) -> bool:
        """Whether the one-time costs are saved within ten years."""
        return self.pays_within(_NEVER_DAYS)

    @property
    def machine_dollars(self) -> float:
        """Cost of the run in dollars on a machine that costs nothing: its requests to S3."""
        functions = msgspec.structs.replace(self.work, requests={})
        return total(self.run) - total(cost_of(functions, self.prices))

    @property
    def headline(self) -> str:
        """PAYS or DOES NOT PAY: after how many scans, once, per scan and per month."""
        return headline_of(self)

    @property
    def title(self) -> str:
        """Title of the table of :meth:`rows`."""
        scans = scans_a_month(self.scans_per_month)
        return f"US dollars at {scans} and the prices of {self.prices.region}"

    @property
    def basis(self) -> str:
        """Whether a deployed run was priced, or one on this machine."""
        return basis_of(self)

    @property
    def athena(self) -> str:
        """How long Athena takes for a scan, and what it bills for the bytes it reads."""
        return athena_of(self)

    def pays_within(self, days: float) -> bool:
        """Return True if the one-time costs are saved within ``days``."""
        found = self.payback_days
        return found is not None and found <= days

    def lines(self) -> tuple[str, ...]:
        """Return a few sentences for display, the last of them about the payback."""
        return lines_of(self)

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Return table rows: dollars once, per scan and per month, without compaction and with it.

        The last row has the savings, negative where compaction costs more.
        """
        return rows_of(self)

    def figures(self) -> tuple[tuple[str, tuple[Figure, ...]], ...]:
        """Return all figures, grouped by title."""
        return (
            ("once, with compaction", self.compacted.once),
            ("once, without", self.left.once),
            ("a scan of the sources", self.left.scan),
            ("a scan of the outputs", self.compacted.scan),
            ("a month, without compaction", self.left.month),
            ("a month, with it", self.compacted.month),
            ("once, where your account has it on", self.aside),
            ("and so", self._derived()),
        )

    def explain(self) -> tuple[str, ...]:
        """Return every figure with formula and numbers, and each price with its source."""
        lines: list[str] = []
        prices: dict[Price, None] = {}
        for title, figures in self.figures():
            lines += [f"{title}:"] if figures else []
            for one in figures:
                lines.append(f"  {one.explained}")
                prices |= dict.fromkeys(one.prices)
        return (*lines, "prices:", *(f"  {price_text(one)}" for one in prices))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: amounts in dollars, times in days and seconds."""
        return {
            "headline": self.headline,
            "pays": self.pays,
            "basis": self.basis,
            "region": self.prices.asked,
            "prices_of": self.prices.region,
            "scans_per_month": self.scans_per_month,
            "target_class": self.target_class,
            "retention_days": self.retention_days,
            "run": self.work.to_dict(),
            "run_dollars": total(self.run),
            "run_dollars_on_a_machine": self.machine_dollars,
            "once_dollars": self.once,
            "saved_by_scan_dollars": self.saved_by_scan,
            "saved_by_storage_dollars_a_month": self.saved_by_storage,
            "saved_dollars_a_month": self.saved_by_month,
            "scan_seconds": {"before": self.seconds[0], "after": self.seconds[1]},
            "outputs": {
                "retrieval_dollars_a_scan": retrieval_of(self.compacted.scan),
                "minimum_days": MINIMUM_DAYS.get(self.target_class, 0),
                "dollars_a_month": months_by_class(
                    self.after, self.target_class, self.prices, self.scans_per_month
                ),
            },
            "payback_days": self.payback_days,
            "payback_scans": self.payback_scans,
            "storage_payback_days": self.storage_days,
            "lines": list(self.lines()),
            "figures": [
                {"of": title, **asdict(one), "prices": [_named(price) for price in one.prices]}
                for title, figures in self.figures()
                for one in figures
            ],
        }

    def _derived(self) -> tuple[Figure, ...]:
        once, left = total(self.compacted.once), total(self.left.once)
        scans = self.scans_per_month
        return (
            _difference("spent once", "once with compaction - once without", once, left),
            _difference(
                "saved by a scan",
                "scan of the sources - scan of the outputs",
                total(self.left.scan),
                total(self.compacted.scan),
            ),
            _difference(
                "saved by a month of storage",
                "month without compaction - month with it",
                total(self.left.month),
                total(self.compacted.month),
            ),
            Figure(
                "saved by a month",
                self.saved_by_month,
                "storage + scans a month x saved by a scan",
                f"{shown(self.saved_by_storage)} + {scans:g} x {shown(self.saved_by_scan)}",
            ),
        )


def verdict(
    shape_before: Shape,
    shape_after: Shape,
    run: RunWork,
    prices: Prices,
    scans_per_month: float = USUAL_SCANS_PER_MONTH,
    *,
    target_class: str = STANDARD,
    retention_days: float | None = USUAL_RETENTION_DAYS,
) -> Verdict:
    """Return what a run costs, what it saves, and how long it takes to pay for itself.

    Args:
        shape_before: the sources, in their present classes.
        shape_after: the outputs, as the run writes them.
        run: its use of AWS.
        prices: of the region.
        scans_per_month: how often everything is read.
        target_class: class that lifecycle moves the outputs to: one of
            :data:`compactor.settings.storage_classes.STORAGE_CLASSES`.
        retention_days: how long the sources are kept in addition to the outputs; None if they are
            never deleted, so that both are paid for every month.
    """
    as_read = (*cost_of(run, prices), *to_read_once(shape_before, prices))
    after = shape_after.moved(target_class)
    kept = a_month(shape_before, prices, scans_per_month)
    month = a_month(after, prices, scans_per_month)
    moved = to_move(shape_after, target_class, prices)
    early = to_delete_early(shape_before, prices)
    compacted = Way(
        once=(*as_read, *moved, *_both_copies(kept, retention_days), *early),
        month=(*month, *kept) if retention_days is None else month,
        scan=to_scan(after, prices),
    )
    before, left = _without(shape_before, target_class, prices, scans_per_month)
    return Verdict(
        before=before,
        after=after,
        left=left,
        compacted=compacted,
        work=run,
        run=as_read,
        prices=prices,
        scans_per_month=scans_per_month,
        target_class=target_class,
        retention_days=retention_days,
        seconds=(seconds(ATHENA, before.stored), seconds(ATHENA, after.stored)),
    )


def _without(sources: Shape, target_class: str, prices: Prices, scans: float) -> tuple[Shape, Way]:
    """Return the cheaper alternative without compaction."""
    stay = Way((), a_month(sources, prices, scans), to_scan(sources, prices))
    if known(target_class) == STANDARD:
        return sources, stay
    there = sources.moved(target_class)
    once = to_move(sources, target_class, prices)
    move = Way(once, a_month(there, prices, scans), to_scan(there, prices))
    if move.over(_COMPARED_MONTHS, scans) < stay.over(_COMPARED_MONTHS, scans):
        return there, move
    return sources, stay


def _both_copies(kept: Sequence[Figure], retention_days: float | None) -> tuple[Figure, ...]:
    """Return the cost of storing the sources until retention ends."""
    if not retention_days:
        return ()
    month = total(kept)
    days = f"{retention_days:g} / {DAYS_PER_MONTH:.1f}"
    return (
        Figure(
            f"both copies, {retention_days:g} days",
            month * retention_days / DAYS_PER_MONTH,
            "a month of the sources x days / days of a month",
            f"{shown(month)} x {days}",
            tuple(price for one in kept for price in one.prices),
        ),
    )


def _difference(name: str, formula: str, more: float, less: float) -> Figure:
    return Figure(name, more - less, formula, f"{shown(more)} - {shown(less)}")


def _days(once: float, saved_by_month: float) -> float | None:
    if once <= 0:
        return 0.0 if saved_by_month >= 0 else None
    return once / saved_by_month * DAYS_PER_MONTH if saved_by_month > 0 else None


def _named(price: Price) -> dict[str, Any]:
    return {
        "region": price.region,
        "name": price.name,
        "dollars": price.dollars,
        "units": price.units,
        "source": price.source,
        "date": price.date,
        "sure": price.sure,
    }
