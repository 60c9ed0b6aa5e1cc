"""Formats values for a page or a fragment of one; outside input is escaped."""

from __future__ import annotations

import re
from html import escape as html_escape

from compactor.escaping import visible

# ISO 8601 as the state machine and this program write it, always in UTC.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$")


def human_seconds(seconds: float) -> str:
    """Format a duration: 0.04 s, 1.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600:,} h {whole % 3_600 // 60} min"


def moment(text: str) -> str:
    """Format a time to the second, as ``2026-01-31 06:01:02 UTC``; return other text as it is."""
    found = _MOMENT.match(text)
    return f"{found[1]} {found[2]} UTC" if found else text


def escape(text: str) -> str:
    """Escape text for the page, and make invisible characters visible."""
    return html_escape(visible(text))
