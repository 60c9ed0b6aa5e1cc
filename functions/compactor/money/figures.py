"""An amount of dollars, and how it was computed: formula, numbers, and where each price is from."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compactor.prices import Price, Prices

_LEAST = 1e-6
# Below, cents hide the figure.
_EXACT = 0.0995


class Figure(msgspec.Struct, frozen=True):
    """One amount.

    Attributes:
        name: what is paid for.
        dollars: US dollars; negative for what comes back.
        formula: in words.
        numbers: the same with its numbers.
        prices: that it stands on.
    """

    name: str
    dollars: float
    formula: str
    numbers: str
    prices: tuple[Price, ...] = ()

    @property
    def explained(self) -> str:
        """The formula and its numbers, for a person."""
        return f"{self.name} = {self.formula} = {self.numbers} = {shown(self.dollars)}"


def charged(name: str, count: float, what: str, price: Price) -> Figure:
    """The cost of a number of units.

    Args:
        name: what is paid for.
        count: of the price's unit.
        what: the count, in words.
        price: of one unit.
    """
    each = f"${price.dollars:g}" + (f" / {price.units:,}" if price.units != 1 else "")
    number = f"{count:,.0f}" if count == int(count) else f"{count:,.6g}"
    return Figure(name, count * price.each, f"{what} x price", f"{number} x {each}", (price,))


def total(figures: Iterable[Figure]) -> float:
    """Dollars of all of them."""
    return sum(one.dollars for one in figures)


def price_text(price: Price) -> str:
    """A price with its source, for a person."""
    amount = f"${price.dollars:g}" + (f" for {price.units:,}" if price.units != 1 else "")
    parts = [f"{price.source}, {price.date}", *((price.note,) if price.note else ())]
    parts += () if price.sure else ("not compared with the page",)
    return f"{price.unit}, {price.region}: {amount} ({'; '.join(parts)})"


def price_of(prices: Prices, name: str) -> Price:
    """The price of a name.

    Raises:
        KeyError: there is none.
    """
    return prices.by_name[name]


def shown(dollars: float) -> str:
    """Dollars as a person reads them: to the cent from 10 cents on, below with two digits."""
    amount, sign = abs(dollars), "-" if dollars < 0 else ""
    if not amount:
        return "$0"
    if amount < _LEAST:
        return "less than $0.000001" if dollars > 0 else "next to nothing"
    if amount >= _EXACT:
        return f"{sign}${amount:,.2f}"
    text = f"{float(f'{amount:.2g}'):.7f}".rstrip("0")
    return f"{sign}${text}"
