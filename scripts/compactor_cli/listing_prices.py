"""What it costs to learn which objects there are: by LIST, an S3 Inventory, or S3 Metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compactor.discovery.discover import Discovery
from compactor.discovery.estimate import PASSES
from compactor.money.storage import KEYS_PER_LIST
from compactor.prices import prices_for

_USUAL, _OREGON = prices_for("us-east-1"), prices_for("us-west-2")
LIST_DOLLARS = _USUAL.of("s3.list")
INVENTORY_DOLLARS = _USUAL.of("s3.inventory")
# What is there already, once; each change, as a journal belongs to every live inventory; a month of
# a bucket of more than a billion.
BACKFILL_DOLLARS = _OREGON.of("s3.metadata.backfill")
CHANGE_DOLLARS = _OREGON.of("s3.metadata.change")
MONTH_DOLLARS = _OREGON.of("s3.metadata.month")
_FREE_OBJECTS = 1_000_000_000
_CENT = 0.01


@dataclass(frozen=True, slots=True)
class ListingPrices:
    """All prices of one run, in dollars.

    Attributes:
        objects: of the source, as far as discovery counted them.
        list_requests: the least there can be; a page may hold less than 1,000 keys.
        by_table: the run takes a live inventory table.
    """

    objects: int
    list_requests: int
    by_table: bool = False

    @property
    def list_dollars(self) -> float:
        """By LIST."""
        return self.list_requests * LIST_DOLLARS

    @property
    def inventory_dollars(self) -> float:
        """By one inventory of these objects; S3 bills one of a whole bucket for all of its."""
        return self.objects * INVENTORY_DOLLARS

    @property
    def backfill_dollars(self) -> float:
        """To begin a live inventory table of these objects; S3 bills all of the bucket's, once."""
        return self.objects * BACKFILL_DOLLARS

    @property
    def table_month_dollars(self) -> float:
        """A month of it, changes apart: nothing up to a billion objects of a bucket."""
        return self.objects * MONTH_DOLLARS if self.objects > _FREE_OBJECTS else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "objects": self.objects,
            "list_requests": self.list_requests,
            "list_dollars": round(self.list_dollars, 6),
            "inventory_dollars": round(self.inventory_dollars, 6),
            "table_backfill_dollars": round(self.backfill_dollars, 6),
            "table_month_dollars": round(self.table_month_dollars, 6),
            "table_change_dollars": CHANGE_DOLLARS,
        }

    @property
    def line(self) -> str:
        """For a person."""
        if self.by_table:
            return (
                f"the live inventory table saves {self.list_requests:,} LISTs,"
                f" {_dollars(self.list_dollars)} a run; it costs"
                f" {_dollars(self.backfill_dollars)} once for {self.objects:,} objects,"
                f" ${CHANGE_DOLLARS * 1_000_000:.2f} for a million changes, and"
                f" {_dollars(self.table_month_dollars)} a month (US West (Oregon), without its"
                " storage and requests)"
            )
        return (
            f"to list {self.objects:,} objects costs {_dollars(self.list_dollars)} by LIST, and"
            f" {_dollars(self.inventory_dollars)} by an S3 Inventory of them (us-east-1)"
        )


def prices_of(found: Discovery, *, by_table: bool = False) -> ListingPrices:
    """What listing costs a run over what discovery found.

    Args:
        found: by discovery.
        by_table: the run takes a live inventory table.
    """
    counts = [item.objects for item in (*found.items, *found.oversized)]
    resting = found.resting
    # Discovery alone lists what is at rest.
    once = max(resting.partitions, -(-resting.objects // KEYS_PER_LIST))
    requests = PASSES * _requests(counts) + once
    return ListingPrices(sum(counts) + resting.objects, requests, by_table)


def _requests(counts: Iterable[int]) -> int:
    return sum(max(1, -(-count // KEYS_PER_LIST)) for count in counts)


def _dollars(value: float) -> str:
    if not value:
        return "nothing"
    return f"${value:,.2f}" if value >= _CENT else "less than $0.01"
