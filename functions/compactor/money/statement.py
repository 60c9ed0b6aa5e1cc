"""A verdict as sentences and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compactor.money.classes import class_lines
from compactor.money.figures import Figure, shown, total
from compactor.money.shapes import Shape
from compactor.settings.storage_classes import STORAGE_CLASSES
from compactor.sizes import human_bytes, plural

if TYPE_CHECKING:
    from compactor.money.verdict import Verdict

_DAYS_PER_YEAR = 365
Row = tuple[str, str, str, str]


def lines_of(found: Verdict) -> tuple[str, ...]:
    """See :meth:`compactor.money.verdict.Verdict.lines`."""
    return tuple(_lines(found))


def _lines(found: Verdict) -> Iterator[str]:
    if not found.before.objects:
        yield "nothing would be compacted, so nothing is spent and nothing saved"
        return
    largest = sorted(found.run, key=lambda one: -one.dollars)[:3]
    named = ", ".join(f"{one.name} {shown(one.dollars)}" for one in largest)
    yield f"the run costs {shown(total(found.run))} once ({named})"
    yield _scan_line(found)
    yield _month_line(found)
    scans = found.scans_per_month
    yield from class_lines(found.after, found.target_class, found.prices, scans)
    yield f"payback: {_payback(found)}"
    if found.prices.warning:
        yield found.prices.warning
    unknown = sorted({one.storage_class for one in found.before.holdings} - set(STORAGE_CLASSES))
    if unknown:
        yield f"no prices of {', '.join(unknown)} are known here: taken for STANDARD"


def _scan_line(found: Verdict) -> str:
    before, after = found.seconds
    saved = found.saved_by_scan
    requests = f"saves {shown(saved)}" if saved >= 0 else f"costs {shown(-saved)} more"
    return (
        f"each scan of it opens {plural(found.after.objects, 'object')} instead of"
        f" {found.before.objects:,}: that {requests}, and takes Athena about {after:,.1f} s"
        f" instead of {before:,.1f} s (a model of two published tests)"
    )


def _month_line(found: Verdict) -> str:
    saved, kept = found.saved_by_storage, found.retention_days
    month = f"saves {shown(saved)}" if saved >= 0 else f"costs {shown(-saved)} more"
    if kept is None:
        return f"each month of storage {month}, for the sources stay beside the outputs for ever"
    copies = sum(one.dollars for one in found.compacted.once if one.name.startswith("both copies"))
    return f"each month of storage {month}; both copies for {kept:g} days cost {shown(copies)}"


def _payback(found: Verdict) -> str:
    days, scans = found.payback_days, found.payback_scans
    if found.once <= 0 and days is not None:
        return "immediately: without compaction more would be spent"
    by_scans = f"after {plural(scans, 'scan')}" if scans else ""
    if found.storage_days is not None:
        alone = f"after {_time(found.storage_days)} by storage alone"
        return ", ".join(one for one in (by_scans, _at(found, days), alone) if one)
    saved = found.saved_by_storage
    storage = f"save {shown(saved)}" if saved >= 0 else f"cost {shown(-saved)} more"
    never = (
        f"{plural(found.before.objects, 'object')} of {_average(found.before)}"
        f" in {_classes(found.before)} {storage} a month by storage"
        f" against {shown(found.once)} spent once"
    )
    if not scans:
        return f"never at this size: {never}"
    pays = f"it pays from scan {scans:,} on, not by storage"
    if days is None:
        return f"never at {found.scans_per_month:g} scans a month: {never}; {pays}"
    return f"{by_scans}, {_at(found, days)}; by storage alone never at this size: {never}; {pays}"


def _at(found: Verdict, days: float | None) -> str:
    if days is None or not found.scans_per_month:
        return ""
    return f"{_time(days)} at {found.scans_per_month:g} scans a month"


def _time(days: float) -> str:
    if days < 1:
        return "less than a day"
    if days < 2 * _DAYS_PER_YEAR:
        return f"{days:,.0f} day{'' if round(days) == 1 else 's'}"
    return f"{days / _DAYS_PER_YEAR:,.0f} years"


def _average(shape: Shape) -> str:
    return human_bytes(shape.bytes / max(1, shape.objects))


def _classes(shape: Shape) -> str:
    return ", ".join(one.storage_class for one in shape.holdings)


def rows_of(found: Verdict) -> tuple[Row, ...]:
    """See :meth:`compactor.money.verdict.Verdict.rows`."""
    rows: list[Row] = [_spent(one) for one in found.compacted.once]
    rows += [
        (f"{one.name}, without compaction", shown(one.dollars), "", shown(one.dollars))
        for one in found.left.once
    ]
    rows.append(("Spent once", "", "", shown(-found.once)))
    before, after = found.seconds
    saved = f"{before - after:,.1f} s"
    rows.append(("A scan, Athena (model)", f"{before:,.1f} s", f"{after:,.1f} s", saved))
    rows.append(_row("A scan, S3", found.left.scan, found.compacted.scan))
    rows.append(_row("A month of storage", found.left.month, found.compacted.month))
    month = f"A month with {found.scans_per_month:g} scans"
    rows.append((month, "", "", shown(found.saved_by_month)))
    return tuple(rows)


def _spent(one: Figure) -> Row:
    return (one.name, "", shown(one.dollars), shown(-one.dollars))


def _row(name: str, before: Sequence[Figure], after: Sequence[Figure]) -> Row:
    more, less = total(before), total(after)
    return (name, shown(more), shown(less), shown(more - less))
