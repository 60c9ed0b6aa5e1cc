"""The report of a smoke test: a line for each check, a table, the cost; no names of the account."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.aws.checks import FAILED, KNOWN, NOT_RUN, OK, Result

_PATTERNS = (
    (re.compile(r"\barn:[\w-]+:[^\s,;'\")\]]+"), "<arn>"),
    (re.compile(r"\bs3a?://[^\s,;'\")\]]+"), "<uri>"),
    (re.compile(r"https?://[^\s,;'\")\]]+"), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<address>"),
    (re.compile(r"compactor[-_]smoke[-_][0-9a-f]{8}[\w-]*"), "<name>"),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b"), "<key>"),
    (re.compile(r"(?<!\d)\d{4}-?\d{4}-?\d{4}(?!\d)"), "<account>"),
    (re.compile(r"(?<![\w/+])[\w/+]{40,}={0,2}"), "<secret>"),
)


def redacted(text: str, names: Iterable[str] = ()) -> str:
    """Return a text without ARNs, URIs, account ids, keys, and these names.

    Args:
        text: any text.
        names: of buckets, stacks and whatever else identifies an account.
    """
    # Patterns match whole ARNs and URIs only while the names inside are still there.
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = text.replace(name, "<name>")
    return text


def written(
    results: Sequence[Result],
    *,
    figures: Sequence[str],
    names: Iterable[str] = (),
) -> str:
    """Return the report.

    Args:
        results: of the checks.
        figures: lines on versions, cost and removal.
        names: what to leave out, besides what is recognized.
    """
    counts = Counter(one.verdict for one in results)
    width = max((len(one.name) for one in results), default=0)
    table = [f"{one.name:<{width}}  {one.verdict}" for one in results]
    totals = ", ".join(f"{counts[one]} {one}" for one in (OK, KNOWN, FAILED, NOT_RUN))
    lines = [*(one.line for one in results), "", *table, "", totals, *figures, ""]
    return redacted("\n".join(lines), names)
