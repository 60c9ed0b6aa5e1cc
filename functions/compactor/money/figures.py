"""Amounts of dollars that can be explained: formula, numbers, and the source of each price."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from compactor.prices import Price, Prices

_LEAST = 1e-6
# Below this amount, cents are too coarse.
_EXACT = 0.0995


class Figure(msgspec.Struct, frozen=True):
    """One amount.

    Attributes:
        name: what is paid for.
        dollars: US dollars; negative for savings.
        formula: in words.
        numbers: the formula with its numbers.
        prices: the prices it uses.
    """

    name: str
    dollars: float
    formula: str
    numbers: str
    prices: tuple[Price, ...] = ()

    @property
    def explained(self) -> str:
        """The formula and its numbers in one line."""
        return f"{self.name} = {self.formula} = {self.numbers} = {shown(self.dollars)}"


def charged(name: str, count: float, what: str, price: Price) -> Figure:
    """Return the cost of a number of units.

    Args:
        name: what is paid for.
        count: in the price's unit.
        what: the count in words.
        price: of one unit.
    """
    each = f"${price.dollars:g}" + (f" / {price.units:,}" if price.units != 1 else "")
    number = f"{count:,.0f}" if count == int(count) else f"{count:,.6g}"
    return Figure(name, count * price.each, f"{what} x price", f"{number} x {each}", (price,))


def total(figures: Iterable[Figure]) -> float:
    """Return the sum in dollars."""
    return sum(one.dollars for one in figures)


def price_text(price: Price) -> str:
    """Return a price with its source, for display."""
    amount = f"${price.dollars:g}" + (f" for {price.units:,}" if price.units != 1 else "")
    parts = [f"{price.source}, {price.date}", *((price.note,) if price.note else ())]
    parts += () if price.sure else ("not compared with the page",)
    return f"{price.unit}, {price.region}: {amount} ({'; '.join(parts)})"


def price_of(prices: Prices, name: str) -> Price:
    """Return the price with a name.

    Raises:
        KeyError: there is no such price.
    """
    return prices.by_name[name]


def shown(dollars: float) -> str:
    """Format dollars: with cents from 10 cents up, with two significant digits below."""
    amount, sign = abs(dollars), "-" if dollars < 0 else ""
    if not amount:
        return "$0"
    if amount < _LEAST:
        return "less than $0.000001" if dollars > 0 else "next to nothing"
    if amount >= _EXACT:
        return f"{sign}${amount:,.2f}"
    text = f"{float(f'{amount:.2g}'):.7f}".rstrip("0")
    return f"{sign}${text}"


def rounded(dollars: float) -> str:
    """Format dollars with two significant digits."""
    amount, sign = abs(dollars), "-" if dollars < 0 else ""
    if not amount:
        return "$0"
    if amount < _LEAST:
        return f"{sign}<$0.000001"
    digits = 1 - math.floor(math.log10(amount))
    return f"{sign}${round(amount, digits):,.{max(0, digits)}f}"
