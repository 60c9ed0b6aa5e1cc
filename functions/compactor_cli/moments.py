"""``--since`` and ``--until``: dates, times, and time ago."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from compactor.errors import InvalidInput
from compactor.settings.windows import parse_moment, window_end, window_start

SINCE_HELP = (
    "only sources committed since: an ISO date or date and time (UTC), today or today-N, or a time"
    " ago such as 90m, 12h or 7d"
)
UNTIL_HELP = (
    "only sources committed before, in the same form; a date includes its day. Of a key, selects"
    " the newest version at that time"
)
_AGO = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def since(text: str | None, now: float) -> float:
    """Return the start of the range, UNIX seconds; 0 without a text.

    Raises:
        InvalidInput: not a time.
    """
    return 0.0 if text is None else _moment("--since", text, now)


def until(text: str | None, now: float) -> float:
    """Return the exclusive end of the range, UNIX seconds; infinite without a text.

    Raises:
        InvalidInput: not a time.
    """
    return math.inf if text is None else _moment("--until", text, now)


def _moment(option: str, text: str, now: float) -> float:
    ago = _AGO.fullmatch(text)
    if ago:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        normal = parse_moment(text)
    except ValueError as error:
        accepted = f"{error}, or a time ago such as 90m, 12h or 7d"
        raise InvalidInput(option, text, accepted) from None
    resolve = window_end if option == "--until" else window_start
    found: datetime = resolve(normal, now)
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
