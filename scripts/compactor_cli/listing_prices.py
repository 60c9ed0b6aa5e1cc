"""What it costs to learn which objects there are: by LIST, and by an S3 Inventory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compactor.discovery.discover import Discovery

# us-east-1, Amazon S3 pricing: 1,000 LIST requests, and a million objects listed by an inventory.
LIST_DOLLARS = 0.005 / 1_000
INVENTORY_DOLLARS = 0.0025 / 1_000_000
_KEYS_PER_LIST = 1_000
# Discovery lists a partition, and so does the worker that compacts it.
_PASSES = 2
_CENT = 0.01


@dataclass(frozen=True, slots=True)
class ListingPrices:
    """Both prices of one run, in dollars.

    Attributes:
        objects: of the source, as far as discovery counted them.
        list_requests: the least there can be; a page may hold less than 1,000 keys.
    """

    objects: int
    list_requests: int

    @property
    def list_dollars(self) -> float:
        """By LIST."""
        return self.list_requests * LIST_DOLLARS

    @property
    def inventory_dollars(self) -> float:
        """By one inventory of these objects; S3 bills one of a whole bucket for all of its."""
        return self.objects * INVENTORY_DOLLARS

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "objects": self.objects,
            "list_requests": self.list_requests,
            "list_dollars": round(self.list_dollars, 6),
            "inventory_dollars": round(self.inventory_dollars, 6),
        }

    @property
    def line(self) -> str:
        """For a person."""
        return (
            f"to list {self.objects:,} objects costs {_dollars(self.list_dollars)} by LIST, and"
            f" {_dollars(self.inventory_dollars)} by an S3 Inventory of them (us-east-1)"
        )


def prices_of(found: Discovery) -> ListingPrices:
    """What listing costs a run over what discovery found."""
    counts = [item.objects for item in (*found.items, *found.oversized)]
    resting = found.resting
    # Discovery alone lists what is at rest.
    once = max(resting.partitions, -(-resting.objects // _KEYS_PER_LIST))
    return ListingPrices(sum(counts) + resting.objects, _PASSES * _requests(counts) + once)


def _requests(counts: Iterable[int]) -> int:
    return sum(max(1, -(-count // _KEYS_PER_LIST)) for count in counts)


def _dollars(value: float) -> str:
    return f"${value:,.2f}" if value >= _CENT else "less than $0.01"
