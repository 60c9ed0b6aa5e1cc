"""``compactor plan``: shows what a run would do. Read-only."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from compactor.discovery import forecast as forecasts
from compactor.discovery.discover import Discovery, WorkItem, discover
from compactor.formats import Declaration
from compactor.log.log import CommitLog
from compactor.model import CompactionPlan, Skipped, SkipReason
from compactor.orchestration.discovery_step import committed_in, find_pending
from compactor.outputs.detection import decided_by
from compactor.planning.plan import Knowledge
from compactor.ports import ObjectStore
from compactor.report.reasons import hint_of, nothing_to_do
from compactor.runs.event_listing import event_listing
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor.sizes import human_bytes, plural
from compactor_cli import plan_money
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, print_table, progress
from compactor_cli.idle import is_without_partitions, require_source, window_warning
from compactor_cli.rights import naming_all_missing

_READERS = 8
_SHOWN_ROWS = 50
_HEADS = ("Partition", "Outputs", "Copies", "Objects", "Bytes", "Average", "Skipped")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do to one partition.

    Attributes:
        is_new: the partition has no commit yet.
        waiting: objects skipped for their age; None where there are none.
    """

    item: WorkItem
    plan: CompactionPlan
    is_new: bool = False
    waiting: forecasts.Waiting | None = None

    @property
    def objects(self) -> int:
        """Sources that would be compacted."""
        return sum(len(group.sources) for group in self.plan.groups)

    @property
    def bytes(self) -> int:
        """Listed bytes of the sources."""
        return sum(group.size for group in self.plan.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast for JSON."""
        return {
            "path": self.item.path,
            "prefix": f"s3://{self.item.bucket}/{self.item.prefix}",
            "objects": self.objects,
            "bytes": self.bytes,
            "groups": [
                {"id": g.id, "objects": len(g.sources), "bytes": g.size, "copy": g.copy}
                for g in self.plan.groups
            ],
            "skipped": {reason: asdict(one) for reason, one in self.plan.skipped.items()},
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, DEST and every field of the input."""
    options.add_places(parser, options.SOURCE, options.DESTINATION)
    options.add_common(parser)
    plan_money.add_options(parser)
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Discover, list and plan as a run would; show the plan, its cost and its savings.

    Raises:
        InvalidInput: the input, an option or the price list is invalid.
    """
    settings = Settings.from_input(options.fields_from(args))
    store = open_store(args.endpoint_url, settings.state.bucket)
    prices, scans = plan_money.prices_of(args, store.region), plan_money.scans_from(args)
    rights = naming_all_missing(settings, store, writes=False)
    with rights:
        require_source(settings, store)
        before = Counter(store.requests.snapshot())
        found = find(settings, store)
        forecasts = forecast(found.items, settings, store)
    looked = Counter(store.requests.snapshot()) - before
    new_logs = sum(one.is_new and bool(one.plan.groups) for one in forecasts)
    verdict = plan_money.verdict_of(
        [one.plan for one in forecasts],
        settings,
        found,
        plan_money.standing_of(settings, store, new_logs),
        looked=looked,
        prices=prices,
        scans_per_month=scans,
        target_class=args.target_class,
    )
    headline = headline_of(settings, found, forecasts)
    warning = window_warning(settings, store, time.time()) if is_without_partitions(found) else ""
    if args.json:
        notes = {"headline": headline, "warnings": [warning] if warning else []}
        document = _document(settings, found, forecasts) | notes | {"money": verdict.to_dict()}
        print(json.dumps(document, indent=2))
        return 0
    if headline:
        print_line(headline, "bold")
    else:
        plan_money.show_verdict(verdict)
    if warning:
        print_line(f"warning: {warning}")
    _show(found, forecasts)
    _show_coverage(settings, forecasts)
    return 0


def headline_of(settings: Settings, found: Discovery, planned: Sequence[Forecast]) -> str:
    """Return why a run would do nothing now, and what to change; empty if it would do something."""
    left = found.oversized if settings.spark_engine == "none" else ()
    if any(one.plan.groups for one in planned) or len(found.oversized) > len(left):
        return ""
    skipped: dict[str, Skipped] = {}
    for partition in _skipped(found, planned):
        for reason, one in partition.items():
            skipped[reason] = skipped.get(reason, Skipped(0, 0)).plus(one)
    if found.unpartitioned.objects:
        skipped[SkipReason.UNPARTITIONED.value] = found.unpartitioned
    waiting = forecasts.Waiting.of(one.waiting for one in planned)
    return nothing_to_do(settings, skipped, len(left), waiting=waiting, typed=True)


def find(settings: Settings, store: S3Store) -> Discovery:
    """Discover the partitions."""
    with progress("discovering"):
        if settings.takes_events:
            return find_pending(settings, store, time.time(), writes=False)
        return discover(settings, store, time.time(), committed=committed_in(settings, store))


def forecast(items: Sequence[WorkItem], settings: Settings, store: ObjectStore) -> list[Forecast]:
    """Return the plan of every partition, in the given order.

    A worker plans a partition in windows to bound its memory; planning all windows here takes
    about 0.5 KB per uncommitted object.
    """

    def one(item: WorkItem) -> Forecast:
        state = CommitLog(store, settings, item.partition).load()
        left_alone = state.left_alone(decided_by(settings))
        known = Knowledge(state.committed, left_alone, buckets=state.buckets)
        expected = forecasts.Forecast(settings, store, known, state.written_at, pending)
        planned = expected.of(item.partition, now)
        return Forecast(item, planned, not state.last, expected.waiting)

    now = time.time()
    pending = event_listing(settings, now)
    found: list[Forecast] = []
    with progress("planning", len(items)) as bar, ThreadPoolExecutor(_READERS) as pool:
        for done in pool.map(one, items):
            found.append(done)
            bar.advance()
    return found


def _document(
    settings: Settings, found: Discovery, forecasts: Sequence[Forecast]
) -> dict[str, Any]:
    return {
        "settings": settings.to_dict(),
        "totals": {
            "partitions": len(forecasts) + found.resting.partitions,
            "groups": sum(len(f.plan.groups) for f in forecasts),
            "objects": sum(f.objects for f in forecasts),
            "bytes": sum(f.bytes for f in forecasts),
            "skipped": dict(skips(found, forecasts)),
        },
        "formats": [
            {"declaration": declaration, "objects": objects, "bytes": size}
            for declaration, (objects, size) in coverage_of(settings, forecasts).items()
        ],
        "partitions": [f.to_dict() for f in forecasts],
        "oversized": [item.to_dict() for item in found.oversized],
        "resting": asdict(found.resting),
        "unpartitioned": asdict(found.unpartitioned),
    }


def coverage_of(settings: Settings, forecasts: Sequence[Forecast]) -> dict[str, tuple[int, int]]:
    """Return the objects and bytes of a plan by the declaration that covers them.

    Those that none covers come last, under an empty name.
    """
    covered = {_shown(declaration): [0, 0] for declaration in (*settings.formats, None)}
    groups = (group for forecast in forecasts for group in forecast.plan.groups)
    for source in chain.from_iterable(group.sources for group in groups):
        counts = covered[_shown(settings.declared(source.key))]
        counts[0] += 1
        counts[1] += source.size
    return {name: (objects, size) for name, (objects, size) in covered.items()}


def _shown(declaration: Declaration | None) -> str:
    if declaration is None:
        return ""
    return f"{declaration.match}: {declaration.text}"


def _show_coverage(settings: Settings, forecasts: Sequence[Forecast]) -> None:
    for name, (objects, size) in coverage_of(settings, forecasts).items():
        amount = f"{plural(objects, 'object')}, {human_bytes(size)}"
        if name:
            print_line(f"formats declares {amount}: {name}")
        elif objects:
            print_line(f"not declared: {amount}, compacted if named, dated or proven")


def _show(found: Discovery, forecasts: Sequence[Forecast]) -> None:
    if not is_without_partitions(found):
        _show_partitions(found, forecasts)
    outside = found.unpartitioned
    if outside.objects:
        such = f" such as {outside.examples[0]}" if outside.examples else ""
        print_line(f"outside every partition: {plural(outside.objects, 'object')}{such}")


def _show_partitions(found: Discovery, forecasts: Sequence[Forecast]) -> None:
    if any(one.plan.groups for one in forecasts):
        rows = [_row(f) for f in forecasts[:_SHOWN_ROWS]]
        rows.append(_total(found, forecasts))
        print_table("What a run would do now (nothing was written)", _HEADS, rows)
    elif forecasts:
        # Every figure would be zero.
        print_table(
            "What a run would skip now (nothing was written)",
            (_HEADS[0], _HEADS[-1]),
            [(row[0], row[-1]) for row in map(_row, forecasts[:_SHOWN_ROWS])],
        )
    if len(forecasts) > _SHOWN_ROWS:
        more = plural(len(forecasts) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json lists all")
    if found.resting.partitions:
        print_line(found.resting.line)
    for item in found.oversized:
        least = f"{plural(item.objects, 'object')}, {human_bytes(item.bytes)}"
        print_line(f"for Spark: {item.path or '(root)'}, at least {least}")
    for reason, objects in sorted(skips(found, forecasts).items()):
        such = _example(reason, found, forecasts)
        print_line(f"skipped: {plural(objects, 'object')}, {reason}{such}{hint_of(reason)}")


def _row(one: Forecast) -> tuple[str, ...]:
    skipped = ", ".join(f"{s.objects:,} {reason}" for reason, s in one.plan.skipped.items())
    return one.item.path or "(root)", *_figures([one]), skipped


def _total(found: Discovery, forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    partitions = len(forecasts) + found.resting.partitions
    skipped = skips(found, forecasts).total()
    return plural(partitions, "partition"), *_figures(forecasts), f"{skipped:,}"


def _figures(forecasts: Iterable[Forecast]) -> tuple[str, ...]:
    chosen = list(forecasts)
    groups = [group for one in chosen for group in one.plan.groups]
    objects, size = sum(f.objects for f in chosen), sum(f.bytes for f in chosen)
    return (
        f"{len(groups):,}",
        f"{sum(group.copy for group in groups):,}",
        f"{objects:,}",
        human_bytes(size),
        human_bytes(size / max(1, objects)),
    )


def skips(found: Discovery, forecasts: Iterable[Forecast]) -> Counter[str]:
    """Count the objects that would be skipped, by reason."""
    counts: Counter[str] = Counter()
    for one in _skipped(found, forecasts):
        counts.update({reason: skipped.objects for reason, skipped in one.items()})
    return counts


def _example(reason: str, found: Discovery, forecasts: Iterable[Forecast]) -> str:
    for one in _skipped(found, forecasts):
        if reason in one and one[reason].examples:
            return f", such as {one[reason].examples[0]}"
    return ""


def _skipped(found: Discovery, forecasts: Iterable[Forecast]) -> Iterator[Mapping[str, Skipped]]:
    for one in forecasts:
        yield {reason.value: skipped for reason, skipped in one.plan.skipped.items()}
    yield found.resting.skipped
