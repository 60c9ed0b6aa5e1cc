"""A verdict as sentences and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compactor.money.classes import class_lines
from compactor.money.figures import rounded, shown, total
from compactor.money.shapes import Shape
from compactor.settings.storage_classes import STORAGE_CLASSES
from compactor.sizes import TIB, human_bytes, plural

if TYPE_CHECKING:
    from compactor.money.verdict import Verdict

_DAYS_PER_YEAR = 365
_ATHENA = "athena.scanned_tib"
#: Heads of :data:`Row`.
HEADS = ("", "Once", "Per scan", "Per month")
Row = tuple[str, ...]


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
    if found.aside:
        aside = ", ".join(f"{one.name} {shown(one.dollars)}" for one in found.aside)
        yield f"not counted, where your account has them on: {aside}"
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


def headline_of(found: Verdict) -> str:
    """See :attr:`compactor.money.verdict.Verdict.headline`."""
    scan, month = found.saved_by_scan, found.saved_by_month
    alike = (scan >= 0) == (month >= 0)
    later = f" and {rounded(abs(month))} per month" if alike else f", {_change(month, 'per month')}"
    amounts = f"{_change(-found.once, 'once')}, {_change(scan, 'per scan')}{later}"
    scans, days = found.payback_scans, found.payback_days
    at = f"at {scans_a_month(found.scans_per_month)}"
    if not found.pays or days is None:
        more = f"; scans alone pay from scan {scans:,} on" if scans else ""
        return f"DOES NOT PAY {at}: {amounts}{more}"
    if found.once <= 0:
        return f"PAYS from the start: {amounts} {at}"
    after = f"{plural(scans, 'scan')} ({_time(days)} {at})" if scans else f"{_time(days)} {at}"
    return f"PAYS after {after}: {amounts}"


def scans_a_month(scans: float) -> str:
    """Return a number of scans in words."""
    return f"{scans:g} scan{'' if scans == 1 else 's'} a month"


def _change(saved: float, when: str) -> str:
    return f"{'saves' if saved >= 0 else 'costs'} {rounded(abs(saved))} {when}"


def basis_of(found: Verdict) -> str:
    """See :attr:`compactor.money.verdict.Verdict.basis`."""
    if found.machine_dollars == total(found.run):
        return "priced as a run on this machine: its S3 requests"
    return (
        "priced as a deployed run, with Lambda and Step Functions; on this machine it costs"
        f" {rounded(found.machine_dollars)}, for S3 requests"
    )


def athena_of(found: Verdict) -> str:
    """See :attr:`compactor.money.verdict.Verdict.athena`."""
    before, after = found.seconds
    line = f"Athena takes about {after:,.1f} s per scan instead of {before:,.1f} s (a model)"
    price = found.prices.by_name.get(_ATHENA)
    if price is None:
        return line
    before, after = (shape.bytes / TIB * price.each for shape in (found.before, found.after))
    bill = rounded(after)
    bill += "" if bill == rounded(before) else f" instead of {rounded(before)}"
    return f"{line}; besides, it bills {bill} for the bytes"


def rows_of(found: Verdict) -> tuple[Row, ...]:
    """See :meth:`compactor.money.verdict.Verdict.rows`."""
    amounts = {
        name: (total(way.once), total(way.scan), way.a_month(found.scans_per_month))
        for name, way in (("Sources as they are", found.left), ("Compacted", found.compacted))
    }
    amounts["Saved"] = (-found.once, found.saved_by_scan, found.saved_by_month)
    return tuple((name, *map(rounded, each)) for name, each in amounts.items())
