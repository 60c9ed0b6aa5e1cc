"""Orders of a web shop as CSV with a header line."""

from __future__ import annotations

import csv
import io
from random import Random

from compactor_cli.generator.drawing import Draw, clock

COLUMNS = (
    "order_id",
    "ordered_at",
    "customer_id",
    "customer",
    "country",
    "sku",
    "description",
    "quantity",
    "unit_price",
    "currency",
    "status",
)
NEW_COLUMN = "channel"
SCHEMA_CHANGE_SHARE = 0.7

_POOL = 2_048
_CUSTOMERS = ("García, Ana", 'Robert "Bob" Hill', "Jürgen Groß", "Smith, John", "O'Neil", "李雷")
_ARTICLES = (
    "Kettle, 1.7 l",
    'Monitor 27" 4K',
    "T-shirt; red",
    "Café crème 500 g",
    "USB-C cable (2 m)",
    'Shelf 30" x 12", oak, "rustic"',
)


class OrderRenderer:
    """Order lines, about 130 bytes each, quoted by RFC 4180, without newlines in a field.

    After 70 % of the window a release adds a column, so partitions then have two headers.
    """

    separator = "\n"
    epilogue = "\n"

    def __init__(self, seed: int) -> None:
        rng = Random(f"orders:{seed}")
        lines = [_tail(rng) for _ in range(_POOL)]
        self._old = lines
        self._new = [f"{line},{rng.choice(('web', 'app', 'store'))}" for line in lines]

    def prologue(self, draw: Draw) -> str:
        """The header line of the release in force."""
        columns = (*COLUMNS, NEW_COLUMN) if _released(draw) else COLUMNS
        return ",".join(columns) + "\n"

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Orders of the object's five minutes, in order of time."""
        rng, day, times = draw.rng, draw.day, clock()
        digits = rng.randbytes(8 * rows).hex()
        tails = rng.choices(self._new if _released(draw) else self._old, k=rows)
        return [
            f"{digits[16 * row : 16 * row + 16]},{day} {times[second]},{tail}"
            for row, (second, tail) in enumerate(zip(draw.seconds(rows), tails, strict=True))
        ]


def _released(draw: Draw) -> bool:
    return draw.share >= SCHEMA_CHANGE_SHARE


def _tail(rng: Random) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(
        (
            rng.randrange(1, 10**6),
            rng.choice(_CUSTOMERS),
            rng.choice(("DE", "FR", "GB", "CN", "US", "")),
            f"SKU-{rng.randrange(10**5):05d}",
            rng.choice(_ARTICLES),
            1 + int(rng.expovariate(1.0)),
            f"{rng.lognormvariate(3.0, 1.0):.2f}",
            rng.choice(("EUR", "GBP", "USD")),
            rng.choice(("new", "paid", "shipped", "returned")),
        )
    )
    return line.getvalue()
