"""What AWS takes for what it does: one file, ``prices.json``, and where each figure is from.

A price is of one region. Where a region has none of a name, that of us-east-1 is taken; of a region
that is not in the file at all, that is said.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import msgspec

from compactor.errors import InvalidInput

DEFAULT_REGION = "us-east-1"
_VERSION = 1


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One price.

    Attributes:
        region: in which it is asked for.
        service: as AWS calls it.
        name: by which this project asks for it.
        dollars: US dollars, for so many units.
        units: that ``dollars`` are for, as the source has it.
        unit: what is paid for.
        source: the page it is from.
        date: when it was taken over, YYYY-MM-DD.
        sure: whether it was compared with the page, or a copy of it.
        note: what is to be known of it.
    """

    region: str
    service: str
    name: str
    dollars: float
    units: int
    unit: str
    source: str
    date: str
    sure: bool
    note: str = ""

    @property
    def each(self) -> float:
        """Dollars for one unit."""
        return self.dollars / self.units


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    currency: str
    prices: tuple[Price, ...]


class Prices(msgspec.Struct, frozen=True):
    """The prices of a region.

    Attributes:
        asked: the region that was asked for.
        region: whose prices these are.
        by_name: of each name its price.
    """

    asked: str
    region: str
    by_name: Mapping[str, Price]

    def of(self, name: str) -> float:
        """Dollars for one unit.

        Raises:
            KeyError: there is no price of this name.
        """
        return self.by_name[name].each

    @property
    def warning(self) -> str:
        """For a person, where the region has none; else empty."""
        if self.asked == self.region:
            return ""
        return f"no prices of {self.asked} are known here: costs are those of {self.region}"


@cache
def every_price() -> tuple[Price, ...]:
    """All that the file has."""
    return _decoded(files("compactor").joinpath("prices.json").read_bytes()).prices


@cache
def prices_digest() -> str:
    """Identifies the file of prices; 32 hex digits."""
    return hashlib.blake2b(msgspec.json.encode(every_price()), digest_size=16).hexdigest()


@cache
def prices_for(region: str | None = None) -> Prices:
    """The prices of a region.

    Args:
        region: as AWS names it; None or empty where it is unknown, and for us-east-1.
    """
    return _of(every_price(), region)


def prices_from(path: Path, region: str | None = None) -> Prices:
    """The prices of a region by a file that replaces the one that is shipped.

    Args:
        path: a file of the same form. What it has no price for is that of the file that is shipped.
        region: as for :func:`prices_for`.

    Raises:
        InvalidInput: it cannot be read, is of another form or version, or has a price that is no
            amount.
    """
    try:
        given = _decoded(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        accepted = f"a file like functions/compactor/prices.json ({error})"
        raise InvalidInput("prices", str(path), accepted) from None
    if given.version != _VERSION:
        raise InvalidInput("prices", str(path), f"a file of version {_VERSION}")
    for one in given.prices:
        if not (0 <= one.dollars < math.inf and one.units > 0):
            accepted = f"dollars of 0 or more for 1 unit or more ({one.region} {one.name})"
            raise InvalidInput("prices", str(path), accepted)
    # What comes later counts.
    return _of((*every_price(), *given.prices), region)


def _decoded(text: bytes) -> _File:
    return msgspec.json.decode(text, type=_File)


def _of(every: Sequence[Price], region: str | None) -> Prices:
    asked = region or DEFAULT_REGION
    usual = {one.name: one for one in every if one.region == DEFAULT_REGION}
    own = {one.name: one for one in every if one.region == asked}
    found = asked if own else DEFAULT_REGION
    return Prices(asked, found, MappingProxyType(usual | own))
