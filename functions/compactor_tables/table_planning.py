"""Plans the work on one table. A pure function of its measure, the rule for it, and the time.

    selecting      which partitions and files    costs  what rewriting them costs
    engine_choice  which engine does it

A plan is shown to people, and yields the order for its executor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from compactor.prices import Prices, prices_for
from compactor.settings.tables import parse_table
from compactor.sizes import MIB
from compactor_tables import costs
from compactor_tables import engine_choice as choosing
from compactor_tables.costs import ENGINES, SPARK, WORKER, Rewrite
from compactor_tables.engine_choice import NONE, Choice
from compactor_tables.measures import CLASSES, DELTA, TableMeasure, histogram
from compactor_tables.orders import (
    BINPACK,
    CHECKPOINT,
    DELETES,
    EXPIRE,
    MANIFESTS,
    NUMBER,
    ORPHANS,
    REWRITE,
    SORT,
    STEPS,
    ZORDER,
    Condition,
    Order,
    PartitionOrder,
)
from compactor_tables.policies import Matched, Rule
from compactor_tables.selecting import Selected, Selection

_DAY = 86_400.0
# Iceberg's commit.manifest.target-size-bytes. Up to _FEW_MANIFESTS manifests do no harm; beyond
# that, _TOO_MANY_TIMES as many as needed are too many.
_MANIFEST_BYTES = 8 * MIB
_FEW_MANIFESTS, _TOO_MANY_TIMES = 20, 4
# Versions since a Delta log's checkpoint; a writer makes one every ten. A new checkpoint costs
# nothing along with a rewrite, but takes an engine start of its own otherwise.
_LONG_LOG, _VERY_LONG_LOG = 20, 100
# How long expiry waits for other work, so that it does not start an engine every hour by itself.
_WAITS_SECONDS = _DAY
# How long it waits for another engine than the worker, which only rewrites.
_WORKER_WAITS_SECONDS = 7 * _DAY
_REST = (EXPIRE, ORPHANS)


class PartitionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One partition of a plan.

    Attributes:
        name: as its engine writes it; empty for a whole table.
        files, bytes: number and size of its data files.
        deletes: number of these files to which deletes apply.
        changed: when a commit last touched it, UNIX seconds; None if unknown.
        rewrite: the files that are selected.
        left: why it is not rewritten; empty if it is.
    """

    name: str
    files: int
    bytes: int
    deletes: int
    changed: float | None
    rewrite: Rewrite
    left: str


class TablePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do to one table, and why.

    Attributes:
        table: its address.
        version: the version that was measured.
        rule: the rule that matched.
        engine: ``worker``, ``spark`` or ``athena``; ``none`` if nothing is done.
        reason: for the choice of engine.
        format: ``iceberg`` or ``delta``.
        files, bytes: number and size of its data files.
        sizes: number of files in each size class; the last is for all larger files.
        delete_files, metadata_files, versions: see :class:`TableMeasure`.
        last_commit: UNIX seconds; None if there is no commit.
        commits_an_hour: over the last day.
        partitions: all of them; one of an older partition spec includes all files in it, whatever
            their spec.
        rewrite: the selected files of all partitions.
        steps: the steps that are ordered.
        costs: dollars, by engine that can do it.
        unable: why the other engines cannot.
        prices: the region of the prices.
        template: the order, without a run id.
    """

    table: str
    version: str
    rule: str
    engine: str
    reason: str
    format: str
    files: int
    bytes: int
    sizes: list[int]
    delete_files: int
    metadata_files: int
    versions: int
    last_commit: float | None
    commits_an_hour: float
    partitions: list[PartitionPlan]
    rewrite: Rewrite
    steps: tuple[str, ...]
    costs: dict[str, float]
    unable: dict[str, str]
    prices: str
    template: Order

    def order(self, run_id: str) -> Order:
        """Return the order for its executor."""
        return msgspec.structs.replace(self.template, run_id=run_id)

    def withdrawn(self, reason: str) -> TablePlan:
        """Return the plan, and its order, with the engine ``none`` and a reason."""
        order = msgspec.structs.replace(self.template, engine=NONE, reason=reason)
        return msgspec.structs.replace(self, engine=NONE, reason=reason, template=order)

    @property
    def dollars(self) -> float:
        """What the engine costs."""
        return self.costs.get(self.engine, 0.0)

    def estimate(self) -> dict[str, Any]:
        """Return the plan's estimate for a report; all zero if nothing is done."""
        one = self.rewrite if self.engine != NONE else Rewrite()
        return _figures(one, self.dollars)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan for JSON, with the upper bound of each size class."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        del found["template"]
        bounds = [*CLASSES, None]
        found["sizes"] = [
            {"to": bound, "files": files} for bound, files in zip(bounds, self.sizes, strict=True)
        ]
        return found


def estimate_by(order: Order, prices: Prices) -> dict[str, Any]:
    """Return the estimate of an order's plan, in the form of :meth:`TablePlan.estimate`."""
    parts = [Rewrite(one.files, one.bytes) for one in order.partitions]
    whole = sum(parts, Rewrite())
    queries = sum(1 for one in parts if one.files)
    return _figures(whole, costs.cost(order.engine, whole, max(1, queries), prices))


def _figures(one: Rewrite, dollars: float) -> dict[str, Any]:
    return {"files": one.files, "bytes": one.bytes, "dollars": round(dollars, 6)}


def plan_table(
    measure: TableMeasure,
    matched: Matched,
    now: float,
    available: Collection[str] = costs.ENGINES,
    *,
    prices: Prices | None = None,
) -> TablePlan:
    """Plan the work on a table.

    Args:
        measure: of the table.
        matched: the rule for it.
        now: UNIX seconds.
        available: engines of this deployment.
        prices: of the region; by default of us-east-1.
    """
    prices = prices or prices_for()
    rule, address = matched.rule, parse_table(measure.name)
    found = {engine: Selection(measure, rule, engine, now).select() for engine in ENGINES}
    older = any(one.rewrite.files and one.partition.spec != measure.spec for one in found[SPARK])
    old = _let_go(measure, rule, now)
    unable = choosing.faults(
        measure,
        address,
        rule,
        available,
        rewrite=_sum(found[WORKER]),
        has_older=older,
        is_to_clean=bool(old) and old[0] < now - rule.keep_days * _DAY - _WORKER_WAITS_SECONDS,
    )
    takes = {
        engine: _cost(engine, found[engine], prices)
        for engine, fault in unable.items()
        if not fault
    }
    choice = choosing.choose(rule.engine, unable, takes)
    selected = found.get(choice.engine, found[SPARK])
    steps = _steps(measure, rule, now, choice.engine, selected)
    choice = _with_time(rule, now, choice, steps, selected)
    if choice.engine == NONE:
        steps = ()
    return TablePlan(
        table=measure.name,
        version=measure.version,
        rule=matched.text,
        engine=choice.engine,
        reason=choice.reason,
        format=measure.format,
        files=measure.files,
        bytes=measure.bytes,
        sizes=histogram(file.size for one in measure.partitions for file in one.files),
        delete_files=measure.delete_files,
        metadata_files=measure.metadata_files,
        versions=measure.versions,
        last_commit=measure.last_commit,
        commits_an_hour=measure.commits_an_hour(now),
        partitions=[_shown(one) for one in selected],
        rewrite=_sum(selected),
        steps=steps,
        costs=takes,
        unable={engine: fault for engine, fault in unable.items() if fault},
        prices=prices.region,
        template=_order(measure, matched, now, choice, steps=steps, selected=selected),
    )


def _sum(selected: Iterable[Selected]) -> Rewrite:
    return sum((one.rewrite for one in selected), Rewrite())


def _cost(engine: str, selected: Sequence[Selected], prices: Prices) -> float:
    queries = sum(1 for one in selected if one.rewrite.files)
    return costs.cost(engine, _sum(selected), max(1, queries), prices)


def _with_time(
    rule: Rule, now: float, choice: Choice, steps: Sequence[str], selected: Sequence[Selected]
) -> Choice:
    """Return the choice, or the engine ``none`` with the reason why nothing is done now."""
    if rule.leave:
        return Choice(NONE, "the rule says to leave it")
    if choice.engine == NONE:
        return choice
    quiet = next((one.text for one in rule.quiet_hours if one.holds(now)), None)
    if quiet is not None:
        return Choice(NONE, f"nothing may run from {quiet} (UTC)")
    if not steps:
        return Choice(NONE, _nothing(selected))
    return choice


def _nothing(selected: Sequence[Selected]) -> str:
    if not selected:
        return "it has no files"
    reasons = [one.left for one in selected]
    busy = sum(1 for one in reasons if one.startswith("written"))
    others = {one for one in reasons if not one.startswith("written")} - {"nothing to rewrite"}
    if len(selected) == 1:
        return reasons[0]
    lines = [f"{busy:,} of {len(selected):,} partitions are written now"] if busy else []
    return "; ".join(["nothing to rewrite", *lines, *sorted(others)])


def _steps(
    measure: TableMeasure, rule: Rule, now: float, engine: str, selected: Sequence[Selected]
) -> tuple[str, ...]:
    """Return the steps that are worth doing, in the order of :data:`STEPS`."""
    found = set()
    if any(one.rewrite.files for one in selected):
        found.add(REWRITE)
    if engine == WORKER:
        return tuple(found)
    if engine == SPARK:
        found |= _steps_of_spark(measure, selected)
    old = _let_go(measure, rule, now)
    if old and (found or old[0] < now - rule.keep_days * _DAY - _WAITS_SECONDS):
        found.add(EXPIRE)
    if found:
        # Only a LIST of the table finds orphans, so they are looked for along with other work.
        found.add(ORPHANS)
        if engine == SPARK and measure.format == DELTA and measure.metadata_files > _LONG_LOG:
            found.add(CHECKPOINT)
    return tuple(one for one in STEPS if one in found)


def _steps_of_spark(measure: TableMeasure, selected: Sequence[Selected]) -> set[str]:
    found = {DELETES} if any(one.deletes for one in selected) else set()
    if measure.format == DELTA:
        return found | ({CHECKPOINT} if measure.metadata_files > _VERY_LONG_LOG else set())
    enough = max(1, -(-measure.metadata_bytes // _MANIFEST_BYTES))
    if measure.metadata_files > max(_FEW_MANIFESTS, _TOO_MANY_TIMES * enough):
        found.add(MANIFESTS)
    return found


def _let_go(measure: TableMeasure, rule: Rule, now: float) -> Sequence[float]:
    """Return the times of superseded snapshots that the rule no longer keeps, oldest first."""
    old = measure.superseded
    if measure.format != DELTA:
        # keep_versions counts the current snapshot, which is not among these.
        old = old[: len(old) - (rule.keep_versions - 1)] if rule.keep_versions > 1 else old
    return [one for one in old if one < now - rule.keep_days * _DAY]


def _shown(one: Selected) -> PartitionPlan:
    return PartitionPlan(
        name=one.partition.name,
        files=len(one.partition.files),
        bytes=one.partition.bytes,
        deletes=sum(1 for file in one.partition.files if file.deletes),
        changed=one.partition.changed,
        rewrite=one.rewrite,
        left=one.left,
    )


def _order(
    measure: TableMeasure,
    matched: Matched,
    now: float,
    choice: Choice,
    *,
    steps: tuple[str, ...],
    selected: Sequence[Selected],
) -> Order:
    rule = matched.rule
    selection = Selection(measure, rule, choice.engine, now)
    taken = [one for one in selected if one.is_taken] if choice.engine != NONE else []
    how, columns = _how(rule)
    return Order(
        run_id="",
        table=measure.name,
        engine=choice.engine,
        reason=choice.reason,
        rule=matched.text,
        measured=measure.version,
        steps=steps,
        how=how,
        columns=columns,
        target_bytes=selection.target_bytes,
        num_files=rule.num_files,
        min_files=rule.min_files,
        partitions=tuple(_partition_order(one) for one in taken),
        verify_rows=_sum(taken).bytes <= rule.verify_bytes,
        keep_seconds=rule.keep_days * _DAY,
        keep_versions=rule.keep_versions,
        orphan_seconds=rule.orphan_days * _DAY,
        below_floor=rule.below_floor,
        until=_next_quiet(rule, now),
    )


def _how(rule: Rule) -> tuple[str, tuple[str, ...]]:
    if rule.num_files is not None:
        return NUMBER, ()
    if rule.sort:
        return SORT, rule.sort
    return (ZORDER, rule.zorder) if rule.zorder else (BINPACK, ())


def _partition_order(one: Selected) -> PartitionOrder:
    partition = one.partition
    return PartitionOrder(
        name=partition.name,
        spec=partition.spec,
        where=tuple(Condition(*each) for each in partition.where),
        files=one.rewrite.files,
        bytes=one.rewrite.bytes,
    )


def _next_quiet(rule: Rule, now: float) -> float | None:
    """Return the beginning of the next quiet hours, UNIX seconds, or None."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    moments = (
        (today + timedelta(days=day, minutes=start)).timestamp()
        for start, _ in rule.quiet_hours
        for day in (0, 1)
    )
    return min((one for one in moments if one > now), default=None)
