"""What outputs cost in the class that lifecycle moves them to, and where they would cost less."""

from __future__ import annotations

from collections.abc import Iterator

from compactor.money.figures import Figure, shown, total
from compactor.money.shapes import Shape
from compactor.money.storage import RETRIEVAL, a_month, to_scan
from compactor.prices import Prices
from compactor.settings.storage_classes import INTELLIGENT_TIERING, MINIMUM_DAYS, STANDARD

# The classes without a fee for retrieval, and the deployment's lifecycle that leads to them.
_LIFECYCLES = {STANDARD: "{}", INTELLIGENT_TIERING: '{"intelligent_tiering": 30}'}


def months_by_class(
    shape: Shape, storage_class: str, prices: Prices, scans_per_month: float
) -> dict[str, float]:
    """Return the dollars for a month of storage and scans, with all objects in one class.

    Returns:
        The dollars in the class, and in those without a fee for retrieval, by their names.
    """
    found = {}
    for name in (storage_class, *_LIFECYCLES):
        there = shape.moved(name)
        each = total(to_scan(there, prices))
        found[name] = total(a_month(there, prices, scans_per_month)) + scans_per_month * each
    return found


def retrieval_of(scan: tuple[Figure, ...]) -> float:
    """Return the dollars of a scan that are fees for retrieval."""
    return total(one for one in scan if one.name.startswith(RETRIEVAL))


def class_lines(
    shape: Shape, storage_class: str, prices: Prices, scans_per_month: float
) -> Iterator[str]:
    """Yield what a class charges for beyond its storage, and whether another is cheaper."""
    days = MINIMUM_DAYS.get(storage_class, 0)
    if days:
        each = retrieval_of(to_scan(shape.moved(storage_class), prices))
        yield (
            f"outputs in {storage_class}: each scan costs {shown(each)} of retrieval, and each"
            f" output is billed for at least {days} days"
        )
    line = cheaper_line(shape, storage_class, prices, scans_per_month, "these outputs cost")
    if line:
        yield line


def cheaper_line(
    shape: Shape, storage_class: str, prices: Prices, scans_per_month: float, what: str
) -> str:
    """Return where the outputs would cost less and how to keep them there, in one line.

    Args:
        shape: the outputs.
        storage_class: the class that lifecycle moves them to.
        prices: of the region.
        scans_per_month: how often everything is read.
        what: subject and verb of the line.

    Returns:
        The line; empty in STANDARD, and if neither STANDARD nor INTELLIGENT_TIERING is cheaper.
    """
    if storage_class == STANDARD:
        return ""
    months = months_by_class(shape, storage_class, prices, scans_per_month)
    cheapest = min(months, key=lambda name: months[name])
    if cheapest == storage_class:
        return ""
    return (
        f"at {scans_per_month:g} scans a month {what} {shown(months[storage_class])} a month in"
        f" {storage_class} and {shown(months[cheapest])} in {cheapest}; the deployment key"
        f" lifecycle={_LIFECYCLES[cheapest]} keeps them there"
    )
