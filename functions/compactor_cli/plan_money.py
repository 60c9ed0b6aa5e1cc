"""The money of ``plan`` and ``scan``: their options, a plan's verdict, and printing a verdict."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compactor.discovery.discover import Discovery
from compactor.discovery.estimate import Standing, expected
from compactor.encoding.output_encoding import packing_class, stored_bytes, target_bytes
from compactor.errors import InvalidInput
from compactor.log.identity import read_identity
from compactor.model import CompactionPlan, Compression, ObjectGroup
from compactor.money import (
    HEADS,
    STORAGE_CLASSES,
    USUAL_SCANS_PER_MONTH,
    Holding,
    Verdict,
    holdings_of,
)
from compactor.ports import ObjectStore
from compactor.prices import Prices, prices_for, prices_from
from compactor.settings.settings import CleanUpMode, Settings
from compactor_cli.console import print_line, print_table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only the verdict depends on."""
    group = parser.add_argument_group("what it costs and saves")
    group.add_argument(
        "--scans-per-month",
        metavar="N",
        default=str(USUAL_SCANS_PER_MONTH),
        help=f"how often all data is read in a month (by default {USUAL_SCANS_PER_MONTH:g})",
    )
    group.add_argument(
        "--target-class",
        metavar="CLASS",
        choices=STORAGE_CLASSES,
        help="also show what sources and outputs cost in this storage class, and to move them"
        f" there: {', '.join(STORAGE_CLASSES)}; nothing is moved",
    )
    group.add_argument(
        "--prices",
        type=Path,
        metavar="FILE.json",
        help="price list to use instead of the built-in one, in the format of"
        " functions/compactor/prices.json",
    )


def scans_from(args: argparse.Namespace) -> float:
    """Return ``--scans-per-month``.

    Raises:
        InvalidInput: it is no number of 0 or more.
    """
    try:
        scans = float(args.scans_per_month)
    except ValueError:
        scans = math.nan
    if not 0 <= scans < math.inf:
        raise InvalidInput("--scans-per-month", args.scans_per_month, "a number of 0 or more")
    return scans


def prices_of(args: argparse.Namespace, region: str) -> Prices:
    """Return the prices of a region, from the price list of ``--prices`` if there is one.

    Raises:
        InvalidInput: the price list is invalid.
    """
    return prices_from(args.prices, region) if args.prices else prices_for(region)


def verdict_of(
    plans: Sequence[CompactionPlan],
    settings: Settings,
    found: Discovery,
    standing: Standing,
    *,
    looked: Mapping[str, int],
    prices: Prices,
    scans_per_month: float = USUAL_SCANS_PER_MONTH,
    target_class: str | None = None,
) -> Verdict:
    """Return what the planned run costs and saves.

    Args:
        plans: of all partitions that workers take.
        settings: of the run.
        found: by discovery.
        standing: the state of the store before the run.
        looked: the requests that discovery and planning took.
        prices: of the region.
        scans_per_month: how often everything is read.
        target_class: see :class:`compactor.money.Verdict`.
    """
    groups = [group for plan in plans for group in plan.groups]
    sources = holdings_of(source for group in groups for source in group.sources)
    outputs: tuple[Holding, ...] = ()
    if groups:
        outputs = (Holding.of(_output_bytes(groups)),)
    if settings.spark_engine != "none":
        # They are at least as large as counted.
        for item in found.oversized:
            count = max(1, math.ceil(item.bytes / target_bytes(settings, Compression.GZIP)))
            sources += (Holding.alike(max(1, item.objects), item.bytes // max(1, item.objects)),)
            outputs += (Holding.alike(count, item.bytes // count),)
    deletes = settings.clean_up is CleanUpMode.DELETE
    return Verdict(
        sources=sources,
        outputs=outputs,
        work=expected(plans, settings, looked, standing, found.oversized),
        prices=prices,
        scans_per_month=scans_per_month,
        target_class=target_class,
        retention_days=settings.retention_days if deletes else None,
    )


def _output_bytes(groups: Sequence[ObjectGroup]) -> Iterator[int]:
    """Yield the expected size of each output, as packing assumes it."""
    for group in groups:
        source = packing_class(group.sources[0].key).compression
        output = group.form.encoding_of(source)
        yield math.ceil(stored_bytes(group.size, source, output))


def standing_of(
    settings: Settings, store: ObjectStore, new_logs: int, *, deployed: bool = True
) -> Standing:
    """Return what a run would find of the state, with one read.

    Args:
        settings: of the run.
        store: where the state is.
        new_logs: partitions with something to do that have no log yet.
        deployed: the run is on the state machine; otherwise on this machine.

    Raises:
        InvalidInput: the state is that of another destination.
        IntegrityError: the marker of the state is damaged.
    """
    return Standing(
        founded=read_identity(settings, store) is not None,
        new_logs=new_logs,
        deployed=deployed,
    )


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict in one line, its amounts as a table, and what the run costs by kind."""
    print_line(verdict.headline, "bold")
    if not verdict.sources:
        return
    print_table(verdict.title, HEADS, verdict.rows())
    for line in verdict.lines():
        print_line(line)
