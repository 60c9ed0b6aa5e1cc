"""The specification of generated objects: each field has a default, a range and an error."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from compactor.errors import InvalidInput

MAX_OBJECTS = 2**32
MAX_ROWS = 1_000_000
MAX_DAYS = 3_660
MAX_SEED = 2**63 - 1
MAX_SIGMA = 2.0
MAX_ACCOUNTS = 1_000

REGIONS = (
    "us-east-1",
    "eu-west-1",
    "us-west-2",
    "eu-central-1",
    "ap-southeast-2",
    "ap-northeast-1",
    "sa-east-1",
    "ca-central-1",
)

_DIRECTIVES = frozenset("YmdHMj")
_PLAIN_DATE_TEXT = re.compile(r"[A-Za-z0-9=_./%-]+")


class LogFormat(StrEnum):
    """The systems whose logs can be generated."""

    JSON = "json"
    CSV = "csv"
    CLOUDTRAIL = "cloudtrail"
    ALB = "alb"
    VPC = "vpc"
    TEXT = "text"
    UNDELIMITED = "undelimited"


class CompressionChoice(StrEnum):
    """How objects are encoded.

    ``native`` is what the real system does: gzip for CloudTrail, ALB and VPC flow logs, no
    compression for the others. ``mixed`` draws none or gzip for every object.
    """

    NATIVE = "native"
    NONE = "none"
    GZIP = "gzip"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class GeneratorSpec:
    """What to generate.

    Attributes:
        objects: number of objects, 1 to 2**32.
        rows: mean number of records of the objects that are not empty.
        formats: the formats, taken in turn.
        start: first day, UTC.
        days: number of days the objects are spread over.
        date_format: the date part of a key, in strftime directives ``%Y %m %d %H %M %j``.
        seed: the same seed and spec give the same objects.
        compression: see :class:`CompressionChoice`.
        empty_rate: share of objects without a record.
        late_rate: share of objects that arrive one hour to three days after their events.
        missing_newline_rate: share of objects whose last line has no newline, where the
            format has lines.
        size_sigma: sigma of the log-normal number of records, 0 (all equal) to 2; the median
            is ``rows * exp(-sigma**2 / 2)``.
        accounts: number of AWS accounts the AWS formats come from.
        regions: number of AWS regions the AWS formats come from.

    Raises:
        InvalidInput: for the first field out of range.
    """

    objects: int = 1_000
    rows: int = 20
    formats: tuple[LogFormat, ...] = (LogFormat.JSON,)
    start: date = date(2026, 1, 1)
    days: int = 7
    date_format: str = "%Y/%m/%d"
    seed: int = 0
    compression: CompressionChoice = CompressionChoice.NATIVE
    empty_rate: float = 0.01
    late_rate: float = 0.02
    missing_newline_rate: float = 0.05
    size_sigma: float = 1.0
    accounts: int = 1
    regions: int = 1

    def __post_init__(self) -> None:
        """Check every field, in the order of the fields."""
        _check_integer("objects", self.objects, 1, MAX_OBJECTS)
        _check_integer("rows", self.rows, 1, MAX_ROWS)
        _check_formats(self.formats)
        _check_start(self.start)
        _check_integer("days", self.days, 1, MAX_DAYS)
        if self.start > date.max - timedelta(days=self.days + 3):
            raise InvalidInput("start", str(self.start), "a date whose last day is before 9999")
        _check_date_format(self.date_format)
        _check_integer("seed", self.seed, 0, MAX_SEED)
        _check_compression(self.compression)
        for name in ("empty_rate", "late_rate", "missing_newline_rate"):
            _check_number(name, getattr(self, name), 1.0)
        _check_number("size_sigma", self.size_sigma, MAX_SIGMA)
        _check_integer("accounts", self.accounts, 1, MAX_ACCOUNTS)
        _check_integer("regions", self.regions, 1, len(REGIONS))


def parse_formats(names: Iterable[str]) -> tuple[LogFormat, ...]:
    """Formats from command line values: repeated, comma separated, or ``mixed`` for all.

    Raises:
        InvalidInput: for an unknown format.
    """
    formats: dict[LogFormat, None] = {}
    for value in names:
        for name in value.split(","):
            if name.strip() == "mixed":
                formats.update(dict.fromkeys(LogFormat))
            else:
                formats[_format_named(name.strip())] = None
    return tuple(formats)


def parse_start(text: str, *, today: date | None = None) -> date:
    """Parse a first day from ``YYYY-MM-DD``, ``today`` or ``today-N`` (N days before today, UTC).

    Raises:
        InvalidInput: for any other text.
    """
    accepted = "YYYY-MM-DD, 'today' or 'today-N'"
    relative = re.fullmatch(r"today(?:-(\d{1,6}))?", text)
    if relative is not None:
        now = today or datetime.now(UTC).date()
        try:
            return now - timedelta(days=int(relative[1] or 0))
        except OverflowError:
            raise InvalidInput("start", text, accepted) from None
    # fromisoformat alone also takes 20260101 and 2026-W01-1.
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is None:
        raise InvalidInput("start", text, accepted)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput("start", text, accepted) from None


def _format_named(name: str) -> LogFormat:
    try:
        return LogFormat(name)
    except ValueError:
        accepted = "one or more of " + ", ".join(LogFormat) + ", or mixed"
        raise InvalidInput("format", name, accepted) from None


def _check_integer(name: str, value: object, low: int, high: int) -> None:
    # bool is a subclass of int; "rows=True" is still a mistake.
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(name, value, f"a whole number from {low} to {high}")


def _check_number(name: str, value: object, high: float) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not (good and math.isfinite(float(str(value))) and 0 <= float(str(value)) <= high):
        raise InvalidInput(name, value, f"a number from 0 to {high:g}")


def _check_formats(formats: object) -> None:
    accepted = "at least one of " + ", ".join(LogFormat) + ", each once"
    if not isinstance(formats, tuple) or not formats or len(set(formats)) != len(formats):
        raise InvalidInput("formats", formats, accepted)
    if not all(isinstance(one, LogFormat) for one in formats):
        raise InvalidInput("formats", formats, accepted)


def _check_start(start: object) -> None:
    if not isinstance(start, date) or isinstance(start, datetime) or start.year < 1970:
        raise InvalidInput("start", start, "a date, 1970-01-01 or later")


def _check_compression(compression: object) -> None:
    if not isinstance(compression, CompressionChoice):
        raise InvalidInput("compression", compression, "one of " + ", ".join(CompressionChoice))


def _check_date_format(text: object) -> None:
    accepted = (
        "strftime directives %Y %m %d %H %M %j, %Y among them, with letters, digits and "
        "= _ . - between, segments separated by single '/', such as %Y/%m/%d or dt=%Y-%m-%d"
    )
    if not isinstance(text, str) or _PLAIN_DATE_TEXT.fullmatch(text) is None:
        raise InvalidInput("date_format", text, accepted)
    directives = re.findall(r"%(.?)", text)
    segments = text.split("/")
    if not set(directives) <= _DIRECTIVES or "Y" not in directives:
        raise InvalidInput("date_format", text, accepted)
    if not all(segment.strip(".") for segment in segments):
        raise InvalidInput("date_format", text, accepted)
