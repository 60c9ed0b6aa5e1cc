"""Chooses the engine that rewrites a table, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from compactor.settings.tables import TableAddress
from compactor.sizes import GIB, human_bytes
from compactor_tables.costs import ATHENA, ENGINES, SPARK, WORKER, Rewrite
from compactor_tables.measures import DELTA, TableMeasure
from compactor_tables.policies import Rule

#: Takes the place of an engine if nothing is done.
NONE = "none"
_AUTO = "auto"
_USUAL_MIN_FILES = 5
# The latest version of Iceberg's specification that Athena writes.
_ATHENA_VERSION = 2
# What a worker rewrites of a table in one run: some minutes on one vCPU.
_WORKER_BYTES = 8 * GIB


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
    rewrite: Rewrite = Rewrite(),  # noqa: B008 - it is immutable
    has_older: bool = False,
    is_to_clean: bool = False,
) -> dict[str, str]:
    """Return, by engine, why it cannot do what a rule asks; an empty text if it can.

    Args:
        measure: of the table.
        address: of the table.
        rule: that matched.
        available: engines of this deployment.
        rewrite: what the worker would rewrite.
        has_older: whether files of an older partition spec are to be rewritten.
        is_to_clean: whether more than a rewrite is overdue.
    """
    found = {
        engine: _fault(engine, measure, address, rule)
        if engine in available
        else f"there is no {engine} here"
        for engine in ENGINES
    }
    if has_older and rule.engine == _AUTO and not found[SPARK]:
        found[ATHENA] = found[ATHENA] or "athena leaves files of an older partition spec"
    if has_older:
        found[WORKER] = found[WORKER] or "the worker leaves files of an older partition spec"
    if rewrite.bytes > _WORKER_BYTES:
        size, most = human_bytes(rewrite.bytes), human_bytes(_WORKER_BYTES)
        found[WORKER] = found[WORKER] or f"a worker rewrites at most {most}, and {size} are to be"
    if is_to_clean and not (found[SPARK] and found[ATHENA]):
        found[WORKER] = found[WORKER] or "the worker only rewrites, and old versions have to go"
    return found


def choose(wanted: str, found: Mapping[str, str], costs: Mapping[str, float]) -> Choice:
    """Return the engine that a rule names, or else the worker if it can, or the cheapest.

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
    if not found[WORKER]:
        return Choice(WORKER, "it starts no other engine")
    best, *dearer = able
    if not dearer:
        return Choice(best, "; ".join(found[one] for one in ENGINES if found[one]))
    compared = f"${costs[best]:,.4f} against ${costs[dearer[0]]:,.4f}"
    return Choice(best, f"cheaper than {dearer[0]}: {compared}")


def _fault(engine: str, measure: TableMeasure, address: TableAddress, rule: Rule) -> str:
    if engine == WORKER:
        return _of_worker(measure, rule)
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


def _of_worker(measure: TableMeasure, rule: Rule) -> str:
    for name in ("sort", "zorder", "num_files"):
        if getattr(rule, name):
            return f"the worker does not rewrite by {name}"
    return measure.spark_only


def _of_athena(measure: TableMeasure, rule: Rule) -> str:
    if rule.sort or rule.zorder:
        return "athena packs files, and neither sorts nor z-orders"
    if measure.format_version > _ATHENA_VERSION:
        return f"athena writes no table of version {measure.format_version} of Iceberg"
    if rule.target_bytes not in (None, measure.target_bytes) or rule.min_files != _USUAL_MIN_FILES:
        return "athena takes target_bytes and min_files from the table's properties alone"
    return ""
