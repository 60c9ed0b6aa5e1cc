"""Chooses the engine that rewrites a table, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from compactor.settings.tables import TableAddress
from compactor_tables.costs import ATHENA, ENGINES, SPARK
from compactor_tables.measures import DELTA, TableMeasure
from compactor_tables.policies import Rule

#: Takes the place of an engine if nothing is done.
NONE = "none"
_AUTO = "auto"
_USUAL_MIN_FILES = 5
# The latest version of Iceberg's specification that Athena writes.
_ATHENA_VERSION = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, or ``none``, with a human-readable reason."""

    engine: str
    reason: str


def faults(
    measure: TableMeasure,
    address: TableAddress,
    rule: Rule,
    available: Collection[str] = ENGINES,
    *,
    has_older: bool = False,
) -> dict[str, str]:
    """Return, by engine, why it cannot do what a rule asks; an empty text if it can.

    Args:
        measure: of the table.
        address: of the table.
        rule: that matched.
        available: engines of this deployment.
        has_older: whether files of an older partition spec are to be rewritten.
    """
    found = {
        engine: _fault(engine, measure, address, rule)
        if engine in available
        else f"there is no {engine} here"
        for engine in ENGINES
    }
    if has_older and rule.engine == _AUTO and not found[SPARK]:
        found[ATHENA] = found[ATHENA] or "athena leaves files of an older partition spec"
    return found


def choose(wanted: str, found: Mapping[str, str], costs: Mapping[str, float]) -> Choice:
    """Return the engine that a rule names, or the cheapest one that can do what it asks.

    Args:
        wanted: the rule's ``engine``.
        found: the result of :func:`faults`.
        costs: in dollars, by engine that can do it.
    """
    if wanted != _AUTO:
        if found[wanted]:
            return Choice(NONE, f"the rule wants {wanted}, but {found[wanted]}")
        return Choice(wanted, "the rule says so")
    able = sorted((one for one in ENGINES if not found[one]), key=lambda one: costs[one])
    if not able:
        return Choice(NONE, "; ".join(found[one] for one in ENGINES))
    best, *dearer = able
    if not dearer:
        return Choice(best, "; ".join(found[one] for one in ENGINES if found[one]))
    compared = f"${costs[best]:,.4f} against ${costs[dearer[0]]:,.4f}"
    return Choice(best, f"cheaper than {dearer[0]}: {compared}")


def _fault(engine: str, measure: TableMeasure, address: TableAddress, rule: Rule) -> str:
    if measure.format == DELTA:
        return _on_delta(engine, rule)
    if rule.num_files is not None:
        return "num_files is for Delta tables, and this is one of Iceberg"
    if engine == SPARK:
        return ""
    if address.kind != "glue":
        return f"{engine} knows tables in Glue's catalog alone"
    return _of_athena(measure, rule)


def _on_delta(engine: str, rule: Rule) -> str:
    if engine != SPARK:
        return f"{engine} rewrites tables of Iceberg alone"
    return "sort is for Iceberg tables; Delta has zorder" if rule.sort else ""


def _of_athena(measure: TableMeasure, rule: Rule) -> str:
    if rule.sort or rule.zorder:
        return "athena packs files, and neither sorts nor z-orders"
    if measure.format_version > _ATHENA_VERSION:
        return f"athena writes no table of version {measure.format_version} of Iceberg"
    if rule.target_bytes not in (None, measure.target_bytes) or rule.min_files != _USUAL_MIN_FILES:
        return "athena takes target_bytes and min_files from the table's properties alone"
    return ""
