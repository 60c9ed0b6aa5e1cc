"""A stretch of a partition's keys that is planned at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from compactor.fingerprint import Fingerprint


@dataclass(slots=True)
class Window:
    """A stretch of a partition's keys, planned again and again until nothing of it is left.

    Its ends stay where the first listing put them, so that which sources share an output does
    not hang on how often, or by whom, the window was planned.

    Attributes:
        start_after: it begins behind this key; empty for the start of the partition.
        until: its last key; None before it was listed, and for the last window of a partition.
        listed: False before it was planned for the first time.
        before: what was listed of the partition before this window.
        seen: the same with this window, as it was listed last.
        again: it was listed more than once.
        compared: True once it was seen what is gone of what was listed before the run.
    """

    start_after: str = ""
    until: str | None = None
    listed: bool = False
    again: bool = False
    compared: bool = False
    before: Fingerprint = field(default_factory=Fingerprint, compare=False)
    seen: Fingerprint = field(default_factory=Fingerprint, compare=False)

    def following(self) -> Window | None:
        """The window behind this one; None behind the last."""
        return None if self.until is None else Window(self.until, before=self.seen)
