"""The objects of one commit log, as shown by one LIST."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf

import msgspec

from compactor.fingerprint import Fingerprint
from compactor.model import SourceObject

_NAME = re.compile(r"/(\d{20})\.(?:(json\.gz)|(checkpoint\.json\.gz)|witness\.json)$")


class LogObjects(msgspec.Struct):
    """The keys of entries and checkpoints by sequence, and which entries have a witness.

    Attributes:
        written_at: when the newest entry was written, by the store's clock; UNIX seconds.
        objects: all of these objects.
    """

    commits: dict[int, str] = msgspec.field(default_factory=dict)
    checkpoints: dict[int, str] = msgspec.field(default_factory=dict)
    witnesses: set[int] = msgspec.field(default_factory=set)
    written_at: float = inf
    objects: list[SourceObject] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, pages: Iterable[Iterable[SourceObject]], prefix: str) -> LogObjects:
        """Return the objects listed below the log's prefix."""
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
        """The outline, if the newest checkpoint covers the newest entry; otherwise None."""
        last = max(self.commits, default=0)
        if max(self.checkpoints, default=0) != last:
            return None
        seen = Fingerprint()
        newest = self.checkpoints.get(last)
        # Older checkpoints expire, so they must not change the digest.
        old = {key for key in self.checkpoints.values() if key != newest}
        seen.add([one for one in self.objects if one.key not in old])
        return Outline(last, self.written_at, seen.seen.digest)


class Outline(msgspec.Struct, frozen=True):
    """A log as listed that a checkpoint sums up completely.

    Attributes:
        last: sequence of its newest entry; 0 for an empty log.
        written_at: when that entry was written, by the store's clock; UNIX seconds, infinite if
            there is none.
        digest: of the names, times and ETags of all entries, all witnesses and the newest
            checkpoint.
    """

    last: int
    written_at: float
    digest: str
