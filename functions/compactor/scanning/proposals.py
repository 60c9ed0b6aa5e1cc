"""The input of a run for each layout that was found, validated like any other. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from compactor.errors import InvalidInput
from compactor.scanning.advice import Advice
from compactor.scanning.choosing import Choice, Layout
from compactor.settings.fields import FIELDS
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

#: Fields of the scan's own input that its verdict depends on, and a plan's verdict too.
MONEY = ("scans_per_month", "target_class")
_AFTER = "-compacted"
_LONGEST_BUCKET = 63
_DAY = timedelta(days=1)
# A window of hours has at most 100,000 hours.
_MOST_DAYS_OF_HOURS = 4_000
_POSITIONAL = ("s3_source_uri", "s3_destination_uri")


@dataclass(frozen=True, slots=True)
class Proposal:
    """The input of a run for one layout.

    Attributes:
        fields: of the input, without defaults.
        notes: what the user must know about them.
        fault: why there is no such input; empty if there is.
    """

    layout: Layout
    fields: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    fault: str = ""

    def command(self, verb: str, *more: str) -> str:
        """Return a shell command, such as ``compactor plan …``."""
        words = ["compactor", verb, *(self.fields[name] for name in _POSITIONAL)]
        for name, value in self.fields.items():
            if name not in _POSITIONAL:
                words += ["--" + name.replace("_", "-"), str(value)]
        return " ".join(shlex.quote(word) for word in (*words, *more))


def propose(
    choice: Choice,
    scanned: Settings,
    advice: Sequence[Advice],
    now: float,
    *,
    destination: str | None,
    parquet: bool = False,
) -> list[Proposal]:
    """Return a proposal for each layout of a choice.

    Args:
        choice: of the keys' layout.
        scanned: input of the scan; its listing is used for the run too if it is not LIST.
        advice: recommended settings.
        now: UNIX seconds.
        destination: URI; by default, one beside the scanned prefix.
        parquet: all sampled objects are Parquet.
    """
    shared: dict[str, Any] = {one.field: one.seconds for one in advice if not one.is_default}
    if scanned.listing != "list":
        shared["listing"] = scanned.listing
    for name in MONEY:
        if getattr(scanned, name) != FIELDS[name].default:
            shared[name] = getattr(scanned, name)
    if parquet:
        shared["format"] = "parquet"
    root = scanned.source.root
    places = _destinations(choice, root, destination)
    proposals = []
    for layout, (place, notes) in zip(choice.layouts, places, strict=True):
        fields = {
            "s3_source_uri": _source(root, layout),
            "s3_destination_uri": place,
            **_partitions(layout, now),
            **shared,
        }
        more = _window_notes(layout, fields, now)
        proposals.append(Proposal(layout, fields, (*notes, *more), _fault(fields, now)))
    return proposals


def _fault(fields: Mapping[str, Any], now: float) -> str:
    try:
        Settings.from_input(fields).window(now)
    except InvalidInput as error:
        return str(error)
    return ""


def _source(root: S3Uri, layout: Layout) -> str:
    return root.uri + "".join(f"{one}/" for one in (*layout.root, *layout.pattern))


def _partitions(layout: Layout, now: float) -> dict[str, Any]:
    """Return the fields that define partitions, and a window with all dates that were seen."""
    if layout.date_format is None or layout.begin is None or layout.end is None:
        return {"depth": layout.depth} if layout.depth else {}
    first, last = _days(layout)
    today = datetime.fromtimestamp(now, UTC)
    fields = {"date_format": layout.date_format}
    # If objects are still arriving, the window must not end with the last date seen.
    goes_on = first.date() < today.date() and last.date() >= (today - 2 * _DAY).date()
    if "%H" in layout.date_format and last - first > _MOST_DAYS_OF_HOURS * _DAY:
        first = last - _MOST_DAYS_OF_HOURS * _DAY
    fields["start"] = first.date().isoformat()
    if not goes_on:
        fields["end"] = last.date().isoformat()
    return fields


def _days(layout: Layout) -> tuple[datetime, datetime]:
    begin, end = layout.begin or 0.0, layout.end or 0.0
    return datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end - 1, UTC)


def _window_notes(layout: Layout, fields: Mapping[str, Any], now: float) -> tuple[str, ...]:
    if "start" not in fields:
        return ()
    first, last = _days(layout)
    notes = []
    if fields["start"] != first.date().isoformat():
        notes.append(f"the keys begin on {first.date()}; a window of hours has at most 100,000")
    if "end" not in fields and last.date() >= datetime.fromtimestamp(now, UTC).date():
        notes.append("the window ends with yesterday: objects of today go on arriving")
    return tuple(notes)


def _destinations(
    choice: Choice, root: S3Uri, given: str | None
) -> list[tuple[str, tuple[str, ...]]]:
    """Return each layout's destination, with notes about it."""
    found = []
    for number, layout in enumerate(choice.layouts, 1):
        own = ""
        if len(choice.layouts) > 1 and not choice.either:
            own = f"{layout.root[-1] if layout.root else number}/"
        found.append(_destination(layout, root, given, own))
    names = [place for place, _ in found]
    if len(set(names)) < len(names) and not choice.either:
        found = [(f"{place}{n}/", notes) for n, (place, notes) in enumerate(found, 1)]
    return found


def _destination(
    layout: Layout, root: S3Uri, given: str | None, own: str
) -> tuple[str, tuple[str, ...]]:
    if given is not None:
        return S3Uri.parse("s3_destination_uri", given).uri + own, ()
    if root.prefix:
        return f"s3://{root.bucket}/{root.prefix[:-1]}{_AFTER}/{own}", ()
    if layout.root:
        return f"s3://{root.bucket}/{layout.root[0]}{_AFTER}/", ()
    bucket = root.bucket[: _LONGEST_BUCKET - len(_AFTER)] + _AFTER
    note = (
        f"a source that is a whole bucket leaves no room in it: make s3://{bucket}/ first, or name"
        " a destination of yours after the source"
    )
    return f"s3://{bucket}/data/{own}", (note,)
