"""What a run costs, and what it saves. Pure; every figure can be explained.

A verdict needs the shapes of sources and outputs, the run's use of AWS, and prices:

    >>> from compactor.money import RunWork, Shape, verdict
    >>> from compactor.prices import prices_for
    >>> before = Shape.alike(10_000_000, 1_024)
    >>> after = Shape.alike(80, 128_000_000)
    >>> run = RunWork(requests={"GET": 10_000_000, "LIST": 20_000, "PUT": 2_000})
    >>> found = verdict(before, after, run, prices_for("us-east-1"), scans_per_month=0)
    >>> print(found.lines()[0])
    the run costs $4.11 once (GET $4.00, LIST $0.10, PUT $0.01)

``found.headline`` is the verdict in one line, ``found.rows()`` a table with ``HEADS``,
``found.lines()`` are sentences about it,
``found.explain()`` every formula with its numbers and the source of its prices, and
``found.to_dict()`` all of it for JSON. For objects of different sizes, use ``Shape.of(sizes)``; for
several storage classes, add shapes. ``retention_days=None`` means that sources are never deleted.
"""

from compactor.money.figures import Figure, rounded, shown, total
from compactor.money.running import RunWork, cost_of
from compactor.money.shapes import Holding, Shape
from compactor.money.statement import HEADS
from compactor.money.verdict import USUAL_SCANS_PER_MONTH, Verdict, verdict

__all__ = [
    "HEADS",
    "USUAL_SCANS_PER_MONTH",
    "Figure",
    "Holding",
    "RunWork",
    "Shape",
    "Verdict",
    "cost_of",
    "rounded",
    "shown",
    "total",
    "verdict",
]
