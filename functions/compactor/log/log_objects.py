"""The objects of one commit log, as one LIST shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf

import msgspec

from compactor.fingerprint import Fingerprint
from compactor.model import SourceObject

_NAME = re.compile(r"/(\d{20})\.(?:(json\.gz)|(checkpoint\.json\.gz)|witness\.json)$")


class LogObjects(msgspec.Struct):
    """Keys of entries and checkpoints by sequence, and which entries have a witness.

    Attributes:
        written_at: when the newest entry was written, by the store's clock; UNIX seconds.
        objects: all of these.
    """

    commits: dict[int, str] = msgspec.field(default_factory=dict)
    checkpoints: dict[int, str] = msgspec.field(default_factory=dict)
    witnesses: set[int] = msgspec.field(default_factory=set)
    written_at: float = inf
    objects: list[SourceObject] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, pages: Iterable[Iterable[SourceObject]], prefix: str) -> LogObjects:
        """The objects that are listed below the log's prefix."""
        listed = cls()
        written: dict[int, float] = {}
        for page in pages:
            for one in page:
                match = _NAME.match(one.key, len(prefix) - 1)
                if match is None:
                    continue
                listed.objects.append(one)
                sequence = int(match[1])
                if match[2]:
                    listed.commits[sequence] = one.key
                    written[sequence] = one.last_modified
                elif match[3]:
                    listed.checkpoints[sequence] = one.key
                else:
                    listed.witnesses.add(sequence)
        listed.written_at = max(written.values(), default=inf)
        return listed

    @property
    def outline(self) -> Outline | None:
        """What it comes to where the newest checkpoint sums up the newest entry; None elsewhere."""
        last = max(self.commits, default=0)
        if max(self.checkpoints, default=0) != last:
            return None
        seen = Fingerprint()
        newest = self.checkpoints.get(last)
        # Older checkpoints expire.
        old = {key for key in self.checkpoints.values() if key != newest}
        seen.add([one for one in self.objects if one.key not in old])
        return Outline(last, self.written_at, seen.seen.digest)


class Outline(msgspec.Struct, frozen=True):
    """A log as listed, summed up by a checkpoint.

    Attributes:
        last: sequence of its newest entry; 0 for an empty log.
        written_at: when that was written, by the store's clock; UNIX seconds, infinite for none.
        digest: of the names, times and ETags of all entries, all witnesses and the newest
            checkpoint.
    """

    last: int
    written_at: float
    digest: str
