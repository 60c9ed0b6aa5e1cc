"""``compactor plan``: shows what a run would do. Read-only."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from compactor.discovery import forecast as forecasts
from compactor.discovery.discover import discover
from compactor.discovery.work_list import Discovery
from compactor.log.log import CommitLog
from compactor.model import CompactionPlan, Partition, Skipped, SkipReason, add_skipped
from compactor.orchestration.discovery_step import find_pending
from compactor.outputs.detection import decided_by
from compactor.partition.events import event_listing
from compactor.partition.receipts import add_covered
from compactor.planning.plan import Knowledge
from compactor.ports import ObjectStore
from compactor.report.declared import by_declaration, coverage_lines
from compactor.report.reasons import hint_of, nothing_to_do
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor.sizes import human_bytes, plural
from compactor_cli import parameters as given
from compactor_cli import plan_money
from compactor_cli.command_line import Args, action
from compactor_cli.console import print_line, print_table, progress
from compactor_cli.idle import is_without_partitions, require_source, window_warning
from compactor_cli.rights import naming_all_missing
from compactor_cli.store import open_store

_READERS = 8
_SHOWN_ROWS = 50
_NOTHING = Skipped(0, 0)
_HEADS = ("Partition", "Outputs", "Copies", "Objects", "Bytes", "Average", "Skipped")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do to one partition.

    Attributes:
        plan: what a worker would do.
        waiting: objects skipped for their age; None where there are none.
        beyond: the least that is left to Spark, if there is more than a worker takes.
    """

    plan: CompactionPlan
    waiting: forecasts.Waiting | None = None
    beyond: Skipped = _NOTHING

    @property
    def path(self) -> str:
        """The partition's path."""
        return self.plan.partition.path

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
            "path": self.path,
            "prefix": f"s3://{self.plan.partition.bucket}/{self.plan.partition.prefix}",
            "objects": self.objects,
            "bytes": self.bytes,
            "groups": [
                {"id": g.id, "objects": len(g.sources), "bytes": g.size, "copy": g.copy}
                for g in self.plan.groups
            ],
            "skipped": {reason: asdict(one) for reason, one in self.plan.skipped.items()},
        }


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    given.COMMON,
    plan_money.OPTIONS,
    given.fields(),
)
def run(args: Args) -> int:
    """Discover, list and plan as a run would; show the plan, its cost and its savings.

    Raises:
        InvalidInput: the input, an option or the price list is invalid.
    """
    settings = Settings.from_input(given.fields_from(args))
    store = open_store(args.endpoint_url, settings.state.bucket)
    prices = plan_money.prices_of(args, store.region)
    rights = naming_all_missing(settings, store, writes=False)
    with rights:
        require_source(settings, store)
        before = Counter(store.requests.snapshot())
        found = find(settings, store)
        forecasts = forecast(found.partitions, settings, store)
    looked = Counter(store.requests.snapshot()) - before
    verdict = plan_money.verdict_of(
        [one.plan for one in forecasts],
        settings,
        [(one.plan, one.beyond) for one in forecasts if one.beyond.objects],
        looked=looked,
        prices=prices,
        scans_per_month=args.scans_per_month,
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
    for line in coverage_lines(settings.formats, coverage_of(settings, forecasts)):
        print_line(line)
    return 0


def headline_of(settings: Settings, found: Discovery, planned: Sequence[Forecast]) -> str:
    """Return why a run would do nothing now, and what to change; empty if it would do something."""
    oversized = sum(bool(one.beyond.objects) for one in planned)
    if any(one.plan.groups for one in planned) or (oversized and settings.spark_engine != "none"):
        return ""
    skipped: dict[str, Skipped] = {}
    for partition in _skipped(found, planned):
        add_skipped(skipped, partition)
    if _outside(found).objects:
        skipped[SkipReason.UNPARTITIONED.value] = _outside(found)
    waiting = forecasts.Waiting.of(one.waiting for one in planned)
    return nothing_to_do(settings, skipped, oversized, waiting=waiting, typed=True)


def find(settings: Settings, store: S3Store) -> Discovery:
    """Discover the partitions."""
    with progress("discovering"):
        if settings.takes_events:
            return find_pending(settings, store, time.time(), writes=False)
        return discover(settings, store, time.time())


def forecast(
    partitions: Sequence[Partition], settings: Settings, store: ObjectStore
) -> list[Forecast]:
    """Return the plan of every partition, in the given order.

    A worker plans a partition in windows to bound its memory; planning all windows here takes
    about 0.5 KB per uncommitted object.
    """

    def of(partition: Partition) -> Forecast:
        state = CommitLog(store, settings, partition).load()
        left_alone = state.left_alone(decided_by(settings))
        known = Knowledge(state.committed, left_alone)
        expected = forecasts.Forecast(settings, store, known, lists)
        planned = expected.of(partition, now)
        return Forecast(planned, expected.waiting, expected.beyond)

    now = time.time()
    pending = event_listing(settings, now)
    lists = None if pending is None else pending.of
    found: list[Forecast] = []
    with progress("planning", len(partitions)) as bar, ThreadPoolExecutor(_READERS) as pool:
        for done in pool.map(of, partitions):
            found.append(done)
            bar.advance()
    return found


def _document(
    settings: Settings, found: Discovery, forecasts: Sequence[Forecast]
) -> dict[str, Any]:
    return {
        "settings": settings.to_dict(),
        "totals": {
            "partitions": len(forecasts),
            "groups": sum(len(f.plan.groups) for f in forecasts),
            "objects": sum(f.objects for f in forecasts),
            "bytes": sum(f.bytes for f in forecasts),
            "skipped": dict(skips(found, forecasts)),
        },
        "formats": by_declaration(settings.formats, coverage_of(settings, forecasts)),
        "partitions": [f.to_dict() for f in forecasts],
        "oversized": [
            {"path": f.path, "objects": f.beyond.objects, "bytes": f.beyond.bytes}
            for f in forecasts
            if f.beyond.objects
        ],
        "unpartitioned": asdict(_outside(found)),
    }


def coverage_of(settings: Settings, forecasts: Sequence[Forecast]) -> dict[str, tuple[int, int]]:
    """Return the objects and bytes of a plan by declaration, as a run counts them."""
    covered: dict[str, tuple[int, int]] = {}
    groups = (group for forecast in forecasts for group in forecast.plan.groups)
    for source in chain.from_iterable(group.sources for group in groups):
        add_covered(covered, {str(settings.declaration_number(source.key)): (1, source.size)})
    return covered


def _show(found: Discovery, forecasts: Sequence[Forecast]) -> None:
    if not is_without_partitions(found):
        _show_partitions(found, forecasts)
    outside = _outside(found)
    if outside.objects:
        such = f" such as {outside.examples[0]}" if outside.examples else ""
        print_line(f"outside every partition: {plural(outside.objects, 'object')}{such}")


def _show_partitions(found: Discovery, forecasts: Sequence[Forecast]) -> None:
    of_workers = [one for one in forecasts if one.plan.groups or not one.beyond.objects]
    if any(one.plan.groups for one in forecasts):
        rows = [_row(f) for f in of_workers[:_SHOWN_ROWS]]
        rows.append(_total(found, forecasts))
        print_table("What a run would do now (nothing was written)", _HEADS, rows)
    elif of_workers:
        # Every figure would be zero.
        print_table(
            "What a run would skip now (nothing was written)",
            (_HEADS[0], _HEADS[-1]),
            [(row[0], row[-1]) for row in map(_row, of_workers[:_SHOWN_ROWS])],
        )
    if len(of_workers) > _SHOWN_ROWS:
        more = plural(len(of_workers) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json lists all")
    for one in forecasts:
        if one.beyond.objects:
            least = f"{plural(one.beyond.objects, 'object')}, {human_bytes(one.beyond.bytes)}"
            print_line(f"for Spark: {one.path or '(root)'}, at least {least}")
    for reason, objects in sorted(skips(found, forecasts).items()):
        such = _example(reason, found, forecasts)
        print_line(f"skipped: {plural(objects, 'object')}, {reason}{such}{hint_of(reason)}")


def _row(one: Forecast) -> tuple[str, ...]:
    skipped = ", ".join(f"{s.objects:,} {reason}" for reason, s in one.plan.skipped.items())
    return one.path or "(root)", *_figures([one]), skipped


def _total(found: Discovery, forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    skipped = skips(found, forecasts).total()
    return plural(len(forecasts), "partition"), *_figures(forecasts), f"{skipped:,}"


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
    yield {
        reason: one
        for reason, one in found.skipped.items()
        if reason != SkipReason.UNPARTITIONED.value
    }


def _outside(found: Discovery) -> Skipped:
    """Return the objects that are in no partition."""
    return found.skipped.get(SkipReason.UNPARTITIONED.value, _NOTHING)
