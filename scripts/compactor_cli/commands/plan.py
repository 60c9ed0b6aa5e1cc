"""``compactor plan``: what a run would do. Reads only."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from compactor.discovery import forecast as forecasts
from compactor.discovery.discover import Discovery, WorkItem, discover
from compactor.inventory.listing import InventoryListing, ListedStore
from compactor.inventory.pages import DirectoryShelf
from compactor.inventory.taking import take_inventory
from compactor.log.log import CommitLog
from compactor.model import CompactionPlan
from compactor.outputs.detection import decided_by
from compactor.planning.plan import Knowledge
from compactor.ports import ObjectStore
from compactor.registry.listing import PendingStore
from compactor.report.html import human_bytes
from compactor.runs.earlier import open_pending
from compactor.settings.settings import Settings
from compactor.stores.s3 import S3Store
from compactor.whole.begin import committed_in, find_listed, find_pending
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.console import counted, print_line, print_table, progress
from compactor_cli.listing_prices import prices_of

_READERS = 8
_SHOWN_ROWS = 50


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do to one partition."""

    item: WorkItem
    plan: CompactionPlan

    @property
    def objects(self) -> int:
        """Sources that would be compacted."""
        return sum(len(group.sources) for group in self.plan.groups)

    @property
    def bytes(self) -> int:
        """Their listed bytes."""
        return sum(group.size for group in self.plan.groups)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """SOURCE, DEST and every field of the input."""
    options.add_places(parser, options.SOURCE, options.DESTINATION)
    options.add_common(parser)
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Discover, list and plan, as a run would; show the decision.

    Raises:
        InvalidInput: the input is at fault.
    """
    settings = Settings.from_input(options.fields_from(args))
    store = open_store(args.endpoint_url, settings.state.bucket)
    with TemporaryDirectory() as directory:
        listing = listing_of(settings, store, Path(directory))
        found = find(settings, store, listing)
        forecasts = forecast(found.items, settings, store, listing)
    if args.json:
        print(json.dumps(_document(settings, found, forecasts), indent=2))
    else:
        _show(found, forecasts, priced=settings.listing != "events")
    return 0


def listing_of(settings: Settings, store: S3Store, directory: Path) -> InventoryListing | None:
    """What the inventory lists, where the run takes one; its pages go to a directory here.

    Raises:
        InvalidInput: there is no such inventory, or it leaves out what is needed.
    """
    if settings.listing != "inventory":
        return None
    with progress("reading the inventory"):
        return take_inventory(settings, store, DirectoryShelf(directory))


def find(settings: Settings, store: S3Store, listing: InventoryListing | None = None) -> Discovery:
    """The partitions."""
    with progress("discovering"):
        if settings.listing == "events":
            return find_pending(settings, store, time.time(), writes=False)
        if listing is not None:
            return find_listed(settings, store, listing)
        return discover(settings, store, time.time(), committed=committed_in(settings, store))


def forecast(
    items: Sequence[WorkItem],
    settings: Settings,
    store: ObjectStore,
    listing: InventoryListing | None = None,
) -> list[Forecast]:
    """The plan of every partition, in the order given.

    A worker plans a window of a partition at a time, to bound its memory; here the same windows
    take about 0.5 KB for every object that no commit names.
    """

    def one(item: WorkItem) -> Forecast:
        state = CommitLog(store, settings, item.partition).load()
        known = Knowledge(state.committed, state.left_alone(decided_by(settings)))
        expected = forecasts.Forecast(settings, lists, known, state.written_at)
        return Forecast(item, expected.of(item.partition, now))

    lists, now = store, time.time()
    if listing is not None:
        lists, now = cast(ObjectStore, ListedStore(store, listing)), listing.as_of
    elif settings.listing == "events":
        lists = cast(ObjectStore, PendingStore(store, open_pending(settings, now)))
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
            "partitions": len(forecasts),
            "groups": sum(len(f.plan.groups) for f in forecasts),
            "objects": sum(f.objects for f in forecasts),
            "bytes": sum(f.bytes for f in forecasts),
            "skipped": dict(_skips(forecasts)),
        },
        "partitions": [f.to_dict() for f in forecasts],
        "oversized": [item.to_dict() for item in found.oversized],
        "unpartitioned": asdict(found.unpartitioned),
        "listing": prices_of(found).to_dict(),
    }


def _show(found: Discovery, forecasts: Sequence[Forecast], *, priced: bool) -> None:
    if not forecasts and not found.oversized:
        print_line("no partition holds an object")
    else:
        rows = [_row(f) for f in forecasts[:_SHOWN_ROWS]]
        rows.append(_total(forecasts))
        heads = ("Partition", "Outputs", "Copies", "Objects", "Bytes", "Average", "Skipped")
        print_table("What a run would do now (nothing was written)", heads, rows)
    if len(forecasts) > _SHOWN_ROWS:
        more = counted(len(forecasts) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json has them all")
    for item in found.oversized:
        least = f"{counted(item.objects, 'object')}, {human_bytes(item.bytes)}"
        print_line(f"for Spark: {item.path or '(root)'}, at least {least}")
    for reason, objects in sorted(_skips(forecasts).items()):
        print_line(f"skipped: {counted(objects, 'object')}, {reason}{_example(reason, forecasts)}")
    outside = found.unpartitioned
    if priced and (forecasts or found.oversized):
        # Of what events told, nobody lists the rest.
        print_line(prices_of(found).line)
    if outside.objects:
        such = f" such as {outside.examples[0]}" if outside.examples else ""
        print_line(f"outside of every partition: {counted(outside.objects, 'object')}{such}")


def _row(one: Forecast) -> tuple[str, ...]:
    skipped = ", ".join(f"{s.objects:,} {reason}" for reason, s in one.plan.skipped.items())
    return one.item.path or "(root)", *_figures([one]), skipped


def _total(forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    return (
        counted(len(forecasts), "partition"),
        *_figures(forecasts),
        f"{_skips(forecasts).total():,}",
    )


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


def _skips(forecasts: Iterable[Forecast]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in forecasts:
        for reason, skipped in one.plan.skipped.items():
            counts[reason.value] += skipped.objects
    return counts


def _example(reason: str, forecasts: Iterable[Forecast]) -> str:
    for one in forecasts:
        for found, skipped in one.plan.skipped.items():
            if found.value == reason and skipped.examples:
                return f", such as {skipped.examples[0]}"
    return ""
