"""The cost of storing objects for a month, moving them to another class, and reading them."""

from __future__ import annotations

from collections.abc import Iterator

from compactor.money.figures import Figure, charged, price_of
from compactor.money.shapes import ARCHIVED, LEAST_BILLED, Holding, Shape
from compactor.prices import Price, Prices
from compactor.settings.storage_classes import (
    INTELLIGENT_TIERING,
    STANDARD,
    STORAGE_CLASSES,
)
from compactor.sizes import GIB

# Metadata of each archived object, stored in Standard.
_NAME_BYTES = 8 * 1024
#: Name of every figure that is a fee for retrieval begins with this.
RETRIEVAL = "retrieval"
#: Maximum number of keys that one LIST returns.
KEYS_PER_LIST = 1_000
DAYS_PER_MONTH = 365 / 12


def a_month(shape: Shape, prices: Prices, scans_per_month: float = 1) -> tuple[Figure, ...]:
    """Return the cost of storing these objects for a month.

    Args:
        shape: of the objects. A class without a known price costs what Standard does.
        prices: of the region.
        scans_per_month: how often everything is read, which decides Intelligent-Tiering's tier.
    """
    return tuple(figure for one in shape.holdings for figure in _kept(one, prices, scans_per_month))


def _kept(one: Holding, prices: Prices, scans: float) -> Iterator[Figure]:
    name, held = known(one.storage_class), f"storage, {one.storage_class}"
    billed = one.billed_bytes / GIB
    if name == INTELLIGENT_TIERING:
        yield from _tiered(one, prices, scans)
    elif name in LEAST_BILLED:
        what = "GB, of what is below 128 KB as many"
        yield charged(held, billed, what, _storage(prices, name))
    elif name in ARCHIVED:
        yield charged(held, billed, "GB, with 32 KB an object", _storage(prices, name))
        names = one.objects * _NAME_BYTES / GIB
        yield charged(f"{held}, names", names, "8 KB an object, GB", _storage(prices, STANDARD))
    else:
        yield charged(held, billed, "GB", _storage(prices, name))


def _tiered(one: Holding, prices: Prices, scans: float) -> Iterator[Figure]:
    held = f"storage, {one.storage_class}"
    large = (one.bytes - one.small_bytes) / GIB
    tier = "intelligent_tiering" if scans >= 1 else "intelligent_tiering_infrequent"
    price = price_of(prices, f"s3.storage.{tier}")
    if large:
        often = "read every month" if scans >= 1 else "not read for 30 days"
        yield charged(held, large, f"GB of objects of 128 KB or more, {often}", price)
        fee = price_of(prices, "s3.monitoring.intelligent_tiering")
        watched = one.objects - one.small_objects
        yield charged(f"monitoring, {one.storage_class}", watched, "objects of 128 KB or more", fee)
    if one.small_objects:
        price = price_of(prices, "s3.storage.intelligent_tiering")
        size = one.small_bytes / GIB
        yield charged(f"{held}, small", size, "GB of objects below 128 KB", price)


def to_move(shape: Shape, to: str, prices: Prices) -> tuple[Figure, ...]:
    """Return the cost of lifecycle transitions to a class; nothing for objects already in it.

    Args:
        shape: objects, in their present classes.
        to: one of :data:`compactor.settings.storage_classes.STORAGE_CLASSES`.
        prices: of the region.
    """
    moved = sum(one.objects for one in shape.holdings if one.storage_class != to)
    if to == STANDARD or not moved:
        return ()
    price = price_of(prices, f"s3.transition.{to.lower()}")
    return (charged(f"transitions, {to}", moved, "objects", price),)


def to_delete_early(shape: Shape, prices: Prices) -> tuple[Figure, ...]:
    """Return the charge for the days of a class's minimum that are left when objects are deleted.

    S3 charges their storage (AmazonS3/latest/userguide/storage-class-intro.html).
    """
    return tuple(
        charged(
            f"early deletion, {one.storage_class}",
            one.early_byte_days / GIB / DAYS_PER_MONTH,
            "GB-months of the minimum duration that are left",
            _storage(prices, known(one.storage_class)),
        )
        for one in shape.holdings
        if one.early_byte_days
    )


def to_scan(shape: Shape, prices: Prices) -> tuple[Figure, ...]:
    """Return S3's charges for listing and reading everything once."""
    if not shape.objects:
        return ()
    pages = -(-shape.objects // KEYS_PER_LIST)
    found = [charged("LIST", pages, "pages of 1,000 keys", price_of(prices, "s3.list"))]
    for one in shape.holdings:
        # Each part of an object is a range, and takes a request of its own.
        gets = max(one.objects, round(shape.parts * one.objects / shape.objects))
        found.append(_gets(one, gets, prices))
        found.extend(_retrieved(one, prices))
    return tuple(found)


def to_read_once(shape: Shape, prices: Prices) -> tuple[Figure, ...]:
    """Return what reading the sources costs in addition to Standard's GETs, in other classes."""
    found: list[Figure] = []
    for one in shape.holdings:
        if _get_name(one) != "s3.get":
            dear, usual = price_of(prices, _get_name(one)), price_of(prices, "s3.get")
            beyond = one.objects * (dear.each - usual.each)
            numbers = f"{one.objects:,} x (${dear.each:g} - ${usual.each:g})"
            name = f"GET, {one.storage_class}, beyond Standard"
            found.append(Figure(name, beyond, "objects x difference", numbers, (dear, usual)))
        found.extend(_retrieved(one, prices))
    return tuple(found)


def _gets(one: Holding, gets: int, prices: Prices) -> Figure:
    return charged(f"GET, {one.storage_class}", gets, "GETs", price_of(prices, _get_name(one)))


def _get_name(one: Holding) -> str:
    name = known(one.storage_class)
    return f"s3.get.{name.lower()}" if name in LEAST_BILLED else "s3.get"


def _retrieved(one: Holding, prices: Prices) -> Iterator[Figure]:
    name = known(one.storage_class)
    if name in LEAST_BILLED | ARCHIVED:
        price = price_of(prices, f"s3.retrieval.{name.lower()}")
        yield charged(f"{RETRIEVAL}, {one.storage_class}", one.bytes / GIB, "GB", price)
    if name in ARCHIVED:
        price = price_of(prices, f"s3.restore.{name.lower()}")
        yield charged(f"restores, {one.storage_class}", one.objects, "objects", price)


def known(storage_class: str) -> str:
    """Return the class whose prices apply: Standard if this one has no known price."""
    return storage_class if storage_class in STORAGE_CLASSES else STANDARD


def _storage(prices: Prices, name: str) -> Price:
    return price_of(prices, f"s3.storage.{name.lower()}")
