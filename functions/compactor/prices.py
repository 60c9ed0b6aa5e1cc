"""AWS prices: one file, ``prices.json``, with the source of each figure.

Prices are per region. If a region lacks a price, that of us-east-1 applies. If the file lacks the
region altogether, :attr:`Prices.warning` says so.
"""

from __future__ import annotations

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
        region: where it applies.
        service: as AWS names it.
        name: this project's name of it.
        dollars: US dollars for ``units`` units.
        units: the number of units, as the source has it.
        unit: what is charged for.
        source: the page it is from.
        date: when it was copied, YYYY-MM-DD.
        sure: whether it was checked against the page or a copy of it.
        note: a remark.
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
        asked: the region asked for.
        region: the region whose prices these are.
        by_name: price by name.
    """

    asked: str
    region: str
    by_name: Mapping[str, Price]

    def of(self, name: str) -> float:
        """Return the dollars for one unit.

        Raises:
            KeyError: there is no price of this name.
        """
        return self.by_name[name].each

    @property
    def warning(self) -> str:
        """A line for the user if the region has no prices; otherwise empty."""
        if self.asked == self.region:
            return ""
        return f"no prices of {self.asked} are known here: costs are those of {self.region}"


@cache
def every_price() -> tuple[Price, ...]:
    """Return all prices of the file."""
    return _decoded(files("compactor").joinpath("prices.json").read_bytes()).prices


@cache
def prices_for(region: str | None = None) -> Prices:
    """Return the prices of a region.

    Args:
        region: as AWS names it; None or empty for us-east-1, or if it is unknown.
    """
    return _of(every_price(), region)


def prices_from(path: Path, region: str | None = None) -> Prices:
    """Return the prices of a region, with a user's file in place of the shipped one.

    Args:
        path: a file of the same form. Prices that it lacks are taken from the shipped file.
        region: see :func:`prices_for`.

    Raises:
        InvalidInput: it cannot be read, has another form or version, or has a price that is not a
            valid amount.
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
    # Later prices override earlier ones.
    return _of((*every_price(), *given.prices), region)


def _decoded(text: bytes) -> _File:
    return msgspec.json.decode(text, type=_File)


def _of(every: Sequence[Price], region: str | None) -> Prices:
    asked = region or DEFAULT_REGION
    usual = {one.name: one for one in every if one.region == DEFAULT_REGION}
    own = {one.name: one for one in every if one.region == asked}
    found = asked if own else DEFAULT_REGION
    return Prices(asked, found, MappingProxyType(usual | own))
