"""Which prefixes are partitions: date formats over a window of time, and wildcard segments.

Pure functions: no store, no clock. All times are UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from compactor.settings.units import DAY_SECONDS, seconds_of

DATE_FORMAT_ACCEPTED = (
    "segments made of %Y, %m, %d, %j and %H, such as %Y/%m/%d, dt=%Y-%m-%d"
    " or year=%Y/month=%m/day=%d/hour=%H"
)
MOMENT_ACCEPTED = (
    "an ISO date (2026-01-31), today or today-N (N days before it, UTC), or an ISO date and time"
    " (2026-01-31T12:00:00Z; UTC unless it has an offset) from 1970 to 2999"
)
MAX_WINDOW_DAYS = 36_500
WINDOW_ACCEPTED = (
    f"days before today such as 7d or 2w, of at most {MAX_WINDOW_DAYS:,}d, or START..END such as"
    f" 2026-01-01..2026-01-31; each is {MOMENT_ACCEPTED}; START.. ends with yesterday"
)
MAX_WINDOW_PREFIXES = 100_000

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_FORBIDDEN = re.compile(r"[*\x00-\x1f\x7f]")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(_DATE.pattern + r"(T.+)?")
_RELATIVE = re.compile(r"today(?:-(\d{1,5}))?", re.ASCII)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


def parse_date_format(text: object) -> str:
    """Check a date format; returns it without leading and trailing ``/``.

    Formats coarser than a day (``%Y/%m``) are accepted: their partitions are the months or
    years that overlap the window. Every finer directive requires the coarser ones, because
    otherwise two different days would share a prefix.

    Raises:
        ValueError: not such a format; the message says what is accepted.
    """
    if not isinstance(text, str) or not text.strip("/"):
        raise ValueError(DATE_FORMAT_ACCEPTED)
    normal = text.removeprefix("/").removesuffix("/")
    found = set(_DIRECTIVE.findall(normal))
    for letter in sorted(found - set("YmdjH")):
        raise ValueError(f"{DATE_FORMAT_ACCEPTED}; %{letter} is not among them")
    segments = normal.split("/")
    if _FORBIDDEN.search(normal) or any(segment in ("", ".", "..") for segment in segments):
        raise ValueError(f"{DATE_FORMAT_ACCEPTED}; no empty segment, no . or .. and no wildcard")
    missing = _missing_directive(found)
    if missing:
        raise ValueError(f"{DATE_FORMAT_ACCEPTED}; {missing}")
    return normal


def _missing_directive(found: set[str]) -> str:
    if "Y" not in found:
        return "%Y must be there, else every year has the same prefixes"
    if "d" in found and "m" not in found and "j" not in found:
        return "%d needs %m"
    if "H" in found and not found & {"d", "j"}:
        return "%H needs a day: %d or %j"
    return ""


def named_level(key: str, start: int) -> str:
    """Return a key's levels below its partition, through the last that names a column.

    Query engines treat a level such as ``region=eu`` as a column. Outputs are written directly
    below their partition, so its records would lose the column. Empty if no level names one.

    Args:
        key: of a source.
        start: where its partition's prefix ends.
    """
    if key.find("=", start) < 0:
        return ""
    levels = key[start:].split("/")[:-1]
    last = max((n for n, level in enumerate(levels) if level.find("=") > 0), default=-1)
    return "/".join(levels[: last + 1])


def wildcards_of(date_format: str) -> tuple[str, ...]:
    """Return the format's segments with ``*`` in place of each directive."""
    return tuple(_DIRECTIVE.sub("*", date_format).split("/"))


def parse_moment(text: object) -> str:
    """Check the start or end of a window; returns it normalised (datetimes in UTC, with Z).

    Relative dates stay as they are: each run resolves them by its own clock.

    Raises:
        ValueError: not such a time; the message says what is accepted.
    """
    if isinstance(text, str) and is_relative(text):
        return text
    if not isinstance(text, str) or not _MOMENT.fullmatch(text):
        raise ValueError(MOMENT_ACCEPTED)
    try:
        moment = _utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError(MOMENT_ACCEPTED) from None
    if not 1970 <= moment.year <= 2999:
        raise ValueError(MOMENT_ACCEPTED)
    return text if _DATE.fullmatch(text) else moment.isoformat().replace("+00:00", "Z")


def parse_window(text: object) -> str:
    """Check a window; returns it normalised: ``7d``, or ``START..`` with or without an end.

    Raises:
        ValueError: not such a window; the message says what is accepted.
    """
    try:
        if not isinstance(text, str):
            raise ValueError
        start, dots, end = text.strip().partition("..")
        if dots:
            return f"{parse_moment(start)}..{parse_moment(end) if end else end}"
        days = seconds_of(start) / DAY_SECONDS
        if days != int(days) or not 1 <= days <= MAX_WINDOW_DAYS:
            raise ValueError
    except ValueError:
        raise ValueError(WINDOW_ACCEPTED) from None
    return f"{int(days)}d"


def window_bounds(window: str, now: float) -> tuple[datetime, datetime]:
    """Return the first instant of a normalised window, and the first after it.

    Args:
        window: as :func:`parse_window` returns it.
        now: UNIX seconds; ``today`` is its UTC date.
    """
    start, dots, end = window.partition("..")
    if not dots:
        return days_before_today(now, int(start.removesuffix("d")))
    return window_start(start, now), window_end(end or "today-1", now)


def has_fixed_length(window: str) -> bool:
    """Return whether the length of a normalised window is the same at any time."""
    start, dots, end = window.partition("..")
    return not dots or is_relative(start) == is_relative(end or "today")


def is_relative(text: str) -> bool:
    """Return whether a date is ``today`` or ``today-N``."""
    return _RELATIVE.fullmatch(text) is not None


def window_start(text: str, now: float) -> datetime:
    """Return the first instant of a window that starts at this normalised date or datetime.

    Args:
        text: as :func:`parse_moment` returns it.
        now: UNIX seconds; ``today`` is its UTC date.
    """
    if relative := _RELATIVE.fullmatch(text):
        return days_before_today(now, int(relative[1] or 0))[0]
    if _DATE.fullmatch(text):
        return _midnight(date.fromisoformat(text))
    return datetime.fromisoformat(text)


def window_end(text: str, now: float) -> datetime:
    """Return the first instant after a window: a date is inclusive, a datetime exclusive."""
    start = window_start(text, now)
    return start + _DAY if _DATE.fullmatch(text) or is_relative(text) else start


def days_before_today(now: float, days: int) -> tuple[datetime, datetime]:
    """Return the window of this many whole UTC days before today, today excluded.

    Args:
        now: UNIX seconds.
        days: at least 0.

    Returns:
        First instant, and first instant after it (the beginning of today).
    """
    today = _midnight(datetime.fromtimestamp(now, UTC).date())
    return today - days * _DAY, today


def window_steps(date_format: str, start: datetime, end: datetime) -> int:
    """Return how many days of the window (hours if the format has %H) there are to expand."""
    first, step = _first_step(date_format, start)
    return max(0, -((first - end) // step))


def expand(date_format: str, start: datetime, end: datetime) -> tuple[str, ...]:
    """Return the relative prefixes of all partitions that overlap a window, each once, in order.

    Args:
        date_format: as :func:`parse_date_format` returns it.
        start: first instant of the window.
        end: first instant after the window.

    Returns:
        Prefixes ending in ``/``. No prefix contains another: they differ, and have the same
        number of segments.
    """
    first, step = _first_step(date_format, start)
    steps = window_steps(date_format, start, end)
    return tuple(dict.fromkeys(_render(date_format, first + n * step) for n in range(steps)))


def matches(pattern: str, segment: str) -> bool:
    """Return whether a segment matches a pattern.

    A ``*`` that is the whole pattern matches one or more characters, any other ``*`` none or more,
    and neither matches a ``/``.
    """
    if pattern == "*":
        return segment != "" and "/" not in segment
    expression = "[^/]*".join(re.escape(piece) for piece in pattern.split("*"))
    return re.fullmatch(expression, segment, re.DOTALL) is not None


def _first_step(date_format: str, start: datetime) -> tuple[datetime, timedelta]:
    if "%H" in date_format:
        return start.replace(minute=0, second=0, microsecond=0), _HOUR
    return _midnight(start.date()), _DAY


def _render(date_format: str, moment: datetime) -> str:
    # strftime("%Y") pads to four digits on some platforms only.
    values = {
        "Y": f"{moment.year:04d}",
        "m": f"{moment.month:02d}",
        "d": f"{moment.day:02d}",
        "H": f"{moment.hour:02d}",
        "j": f"{moment.timetuple().tm_yday:03d}",
    }
    return _DIRECTIVE.sub(lambda match: values[match[1]], date_format) + "/"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
