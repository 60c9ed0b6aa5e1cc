"""The results of a refresh, for each partition of the readers' table and in total. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

_MOST_LINES = 5


@dataclass(slots=True)
class Outcome:
    """The result for one partition.

    Attributes:
        shows: what it shows now; empty if it shows nothing, or that is unknown.
        switched: this refresh changed what it shows.
        objects: in the list that it shows.
        invisible: objects whose records no query saw before this refresh.
        unread: objects in an archive tier, which no engine reads.
        fault: why it does not show what it should, in one line; else empty.
        is_refused: later refreshes fail too, until the settings or the table change.
    """

    path: str
    shows: str = ""
    switched: bool = False
    objects: int = 0
    invisible: int = 0
    unread: int = 0
    fault: str = ""
    is_refused: bool = False


class Outcomes(msgspec.Struct):
    """The results for many partitions.

    Attributes:
        raw, compacted, listed: number of partitions that show sources, outputs, or a list.
        switched: number of these that this refresh changed.
        objects, invisible, unread: totals.
        faults: number of partitions that do not show what they should.
        lines: the reasons for the first of these.
    """

    raw: int = 0
    compacted: int = 0
    listed: int = 0
    switched: int = 0
    objects: int = 0
    invisible: int = 0
    unread: int = 0
    faults: int = 0
    lines: list[str] = msgspec.field(default_factory=list)

    def add(self, one: Outcome) -> None:
        """Add the result for one partition."""
        if one.fault:
            self.faults += 1
            line = f"{one.path or '(root)'}: {one.fault}"
            self.lines = [*self.lines, line][:_MOST_LINES]
            return
        if one.shows:
            setattr(self, one.shows, getattr(self, one.shows) + 1)
        self.switched += one.switched
        self.objects += one.objects
        self.invisible += one.invisible
        self.unread += one.unread

    @property
    def line(self) -> str:
        """A summary in one line, without the faults."""
        shown = f"{self.raw:,} show sources, {self.compacted:,} outputs, {self.listed:,} a list"
        unread = f"; {self.unread:,} archived objects are not read" if self.unread else ""
        return (
            f"readers: {self.switched:,} partitions switched; {shown} of {self.objects:,} objects"
            f"{unread}"
        )

    @property
    def warnings(self) -> list[str]:
        """A warning for each fault."""
        more = self.faults - len(self.lines)
        rest = [f"and {more:,} more partitions are not shown as they are"] if more > 0 else []
        return [f"not shown to readers as it is: {line}" for line in self.lines] + rest
