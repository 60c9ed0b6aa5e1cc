"""Whether delimited text ends within a quoted field (RFC 4180)."""

from __future__ import annotations

import re
from functools import cache


@cache
def _closed_fields(delimiter: bytes) -> re.Pattern[bytes]:
    # Whole fields and what ends them, from the start; it stops short of the end only at a quote
    # that opens a field and is never closed. Possessive, so that it cannot backtrack.
    one = re.escape(delimiter)
    return re.compile(
        rb'(?:"(?:[^"]++|"")*+"[^%b\n]*+|[^"%b\n][^%b\n]*+|[%b\n])*+' % (one, one, one, one)
    )


def ends_within_quotes(content: bytes, delimiter: bytes) -> bool:
    """Whether a quote that opens a field is still open at the end of the content."""
    fields = _closed_fields(delimiter).match(content)
    return fields is not None and fields.end() < len(content)
