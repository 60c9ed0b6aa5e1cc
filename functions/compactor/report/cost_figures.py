"""What a run cost and saves, for its page, from its report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compactor.money import RunWork, Shape, shown, verdict
from compactor.prices import prices_for
from compactor.settings.fields import FIELDS


@dataclass(frozen=True, slots=True)
class Spent:
    """A run's costs, formatted for display.

    Attributes:
        dollars: what the run cost.
        rows: of a table with :data:`compactor.money.HEADS`.
        lines: sentences.
        prices_of: region of the prices.
    """

    dollars: str
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]
    prices_of: str


def spent(report: Mapping[str, Any]) -> Spent | None:
    """Return the costs of a run; None if it compacted nothing.

    Savings are estimated as if all sources, and all outputs, had their average size and were in S3
    Standard.

    Args:
        report: content of ``report.json``.
    """
    cost, totals = report["cost"], report["totals"]
    if not cost or not totals["objects_in"]:
        return None
    prices = prices_for(cost["prices_of"])
    work = RunWork(
        requests=cost["requests"],
        gb_seconds=cost["gb_seconds"],
        invocations=cost["invocations"],
        transitions=cost["transitions"],
        vcpu_hours=cost["vcpu_hours"],
        gb_hours=cost["gb_hours"],
    )
    deletes = _setting(report, "clean_up") == "delete"
    found = verdict(
        _alike(totals["objects_in"], totals["bytes_in"]),
        _alike(totals["objects_out"], totals["bytes_out"]),
        work,
        prices,
        _setting(report, "scans_per_month"),
        target_class=_setting(report, "target_class"),
        retention_days=_setting(report, "retention_days") if deletes else None,
    )
    return Spent(shown(cost["dollars"]), found.rows(), found.lines(), prices.region)


def _alike(objects: int, size: int) -> Shape:
    return Shape.alike(objects, round(size / max(1, objects)))


def _setting(report: Mapping[str, Any], name: str) -> Any:
    return report["settings"].get(name, FIELDS[name].default)
