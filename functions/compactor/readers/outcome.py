"""What became of partitions of the readers' table, one by one and summed up. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

_MOST_LINES = 5


@dataclass(slots=True)
class Outcome:
    """What became of one partition.

    Attributes:
        shows: what it shows now; empty where it shows nothing, or that is unknown.
        switched: this refresh has made it so.
        objects: in the list that it shows.
        invisible: objects whose records no query saw before this refresh.
        unread: objects in an archive tier, which no engine reads.
        fault: why it is not what it is to be, in one line; empty otherwise.
        is_refused: no later refresh shows it either while settings and table are what they are.
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
    """What became of many.

    Attributes:
        raw, compacted, listed: how many partitions show their sources, their outputs, or a list.
        switched: of these, how many were made so.
        objects, invisible, unread: summed up.
        faults: partitions that are not what they are to be.
        lines: of the first of them, why.
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
        """One partition more."""
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
        """Everything but the faults, for a person."""
        shown = f"{self.raw:,} show sources, {self.compacted:,} outputs, {self.listed:,} a list"
        unread = f"; {self.unread:,} archived objects are not read" if self.unread else ""
        return (
            f"readers: {self.switched:,} partitions switched; {shown} of {self.objects:,} objects"
            f"{unread}"
        )

    @property
    def warnings(self) -> list[str]:
        """The text about the faults."""
        more = self.faults - len(self.lines)
        rest = [f"and {more:,} more partitions are not shown as they are"] if more > 0 else []
        return [f"not shown to readers as it is: {line}" for line in self.lines] + rest
