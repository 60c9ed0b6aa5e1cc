"""The money of ``plan`` and ``scan``: their options, a plan's verdict, and printing a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from compactor.encoding.output_encoding import packing_class, stored_bytes, target_bytes
from compactor.model import CompactionPlan, Compression, ObjectGroup, Skipped
from compactor.money import (
    HEADS,
    STORAGE_CLASSES,
    USUAL_SCANS_PER_MONTH,
    Holding,
    Verdict,
    holdings_of,
)
from compactor.money.estimate import expected
from compactor.prices import Prices, prices_for, prices_from
from compactor.settings.settings import Settings
from compactor.settings.units import DAY_SECONDS
from compactor_cli.command_line import Args, Number, Option
from compactor_cli.console import print_line, print_table

OPTIONS: list[click.Parameter] = [
    Option(
        "--scans-per-month",
        type=Number(0, 1e9),
        metavar="N",
        default=USUAL_SCANS_PER_MONTH,
        section="what it costs and saves",
        help=f"how often all data is read in a month (by default {USUAL_SCANS_PER_MONTH:g})",
    ),
    Option(
        "--target-class",
        metavar="CLASS",
        type=click.Choice(STORAGE_CLASSES),
        section="what it costs and saves",
        help="also show what sources and outputs cost in this storage class, and to move them"
        f" there: {', '.join(STORAGE_CLASSES)}; nothing is moved",
    ),
    Option(
        "--prices",
        type=click.Path(path_type=Path),
        metavar="FILE.json",
        section="what it costs and saves",
        help="price list to use instead of the built-in one, in the format of"
        " functions/compactor/prices.json",
    ),
]


def prices_of(args: Args, region: str) -> Prices:
    """Return the prices of a region, from the price list of ``--prices`` if there is one.

    Raises:
        InvalidInput: the price list is invalid.
    """
    return prices_from(args.prices, region) if args.prices else prices_for(region)


def verdict_of(
    plans: Sequence[CompactionPlan],
    settings: Settings,
    beyond: Sequence[tuple[CompactionPlan, Skipped]],
    *,
    looked: Mapping[str, int],
    prices: Prices,
    scans_per_month: float = USUAL_SCANS_PER_MONTH,
    target_class: str | None = None,
) -> Verdict:
    """Return what the planned run costs and saves.

    Args:
        plans: of all partitions.
        settings: of the run.
        beyond: partitions with more than a worker takes, and the least that is left to Spark.
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
        for _, more in beyond:
            count = max(1, math.ceil(more.bytes / target_bytes(settings, Compression.GZIP)))
            sources += (Holding.alike(more.objects, more.bytes // more.objects),)
            outputs += (Holding.alike(count, more.bytes // count),)
    return Verdict(
        sources=sources,
        outputs=outputs,
        work=expected(plans, settings, looked, beyond),
        prices=prices,
        scans_per_month=scans_per_month,
        target_class=target_class,
        retention_days=settings.retention_seconds / DAY_SECONDS if settings.deletes else None,
    )


def _output_bytes(groups: Sequence[ObjectGroup]) -> Iterator[int]:
    """Yield the expected size of each output, as packing assumes it."""
    for group in groups:
        source = packing_class(group.sources[0].key).compression
        output = group.form.encoding_of(source)
        yield math.ceil(stored_bytes(group.size, source, output))


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict in one line, its amounts as a table, and what the run costs by kind."""
    print_line(verdict.headline, "bold")
    if not verdict.sources:
        return
    print_table(verdict.title, HEADS, verdict.rows())
    for line in verdict.lines():
        print_line(line)
