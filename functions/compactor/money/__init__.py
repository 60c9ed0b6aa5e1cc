"""What a run costs, and the bill of its objects before and after it. Pure.

    >>> from compactor.money import Holding, RunWork, Verdict
    >>> from compactor.prices import prices_for
    >>> verdict = Verdict(
    ...     sources=(Holding.alike(10_000_000, 1_024),),
    ...     outputs=(Holding.alike(80, 128_000_000),),
    ...     work=RunWork(requests={"GET": 10_000_000, "LIST": 20_000, "PUT": 2_000}),
    ...     prices=prices_for("us-east-1"),
    ...     scans_per_month=1,
    ... )
    >>> print(verdict.headline)
    PAYS after 33 days at 1 scan a month: costs $4.1 once, saves $4.0 per scan and $3.8 per month

``verdict.rows()`` is a table with ``HEADS``, and ``verdict.to_dict()`` all of it for JSON.
"""

from compactor.money.run_cost import (
    TRANSITIONS_PER_CHILD,
    TRANSITIONS_PER_RUN,
    RunWork,
    charged_requests,
    cost_of,
)
from compactor.money.storage import (
    KEYS_PER_LIST,
    SMALL_BYTES,
    STORAGE_CLASSES,
    Holding,
    holdings_of,
)
from compactor.money.verdict import HEADS, USUAL_SCANS_PER_MONTH, Verdict, dollar_text

__all__ = [
    "HEADS",
    "KEYS_PER_LIST",
    "SMALL_BYTES",
    "STORAGE_CLASSES",
    "TRANSITIONS_PER_CHILD",
    "TRANSITIONS_PER_RUN",
    "USUAL_SCANS_PER_MONTH",
    "Holding",
    "RunWork",
    "Verdict",
    "charged_requests",
    "cost_of",
    "dollar_text",
    "holdings_of",
]
