"""Keeps the sources that are read a second time, and compares them before the commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from compactor.limits import USUAL, WorkerLimits
from compactor.second_reading.comparing import Difference, Frame, Kept, Stretch, differences
from compactor.second_reading.judging import Declared

_STRETCH_BYTES = 8 << 20
# Limit for sources with only a header, until one with rows arrives.
_MOST_BYTES = 32 << 20

# Arguments of a Kept: only a few of the placed sources are chosen.
_Given = tuple[str, bytes, bytes, Sequence[bytes | memoryview]]


class Sample:
    """The sources of one output that are read again, and their neighbours.

    A separate thread reads them while other work continues: a sample once the last source was
    placed, otherwise one stretch while the next is filled.

    A sample consists of the first source and its successor, one chosen by its hash and its
    successor, and the last two, because records are glued where two sources meet. Neighbours that
    are too large to keep break such a pair. With ``everything``, all sources are read in
    consecutive stretches, each beginning with the last source of the previous one.

    Args:
        frame: the output's frame.
        declared: what the settings declare.
        everything: keep every source that is passed in full.
        limits: the worker's limits.
    """

    def __init__(
        self,
        frame: Frame,
        declared: Declared,
        *,
        everything: bool = False,
        limits: WorkerLimits = USUAL,
    ) -> None:
        self._sampled_bytes = limits.sampled_bytes
        self._stretch_sources = limits.stretch_sources
        self._frame = frame
        self._declared = declared
        self._everything = everything
        # Sources by their place in the output, from 1.
        self._count = 0
        self._first: dict[int, _Given] = {}
        self._hashed: dict[int, _Given] = {}
        self._last: deque[tuple[int, _Given]] = deque(maxlen=2)
        self._stretch: dict[int, Kept] = {}
        # The first source with more than a header, which shows what a header is; others may be
        # empty.
        self._filled: dict[int, Kept] = {}
        self._least = b""
        self._bytes = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="second-reading")
        self._under_way: Future[Sequence[Difference]] | None = None
        self._found: list[Difference] = []
        self._ended = False

    def place(
        self,
        name: str,
        identity: bytes,
        raw: bytes | None,
        separator: bytes,
        pieces: Sequence[bytes | memoryview],
    ) -> None:
        """Add the next source of the output.

        Args:
            name: its key.
            identity: a digest of it, used to choose one.
            raw: its bytes as stored; None if they are not available.
            separator: what was written before its slice.
            pieces: its slice.
        """
        self._count += 1
        if raw is None:
            return
        size = len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
        most = self._sampled_bytes
        if not self._everything and (size > most or len(raw) > most):
            return
        one = (name, raw, separator, pieces)
        if not self._filled and size:
            self._filled[self._count] = Kept(*one)
        if self._everything:
            self._follow(Kept(*one), size)
        else:
            self._choose(one, identity)

    def differences(self) -> Sequence[Difference]:
        """Return what is wrong, after every source was placed; waits until all are read."""
        try:
            self.end()
            self._wait()
        finally:
            self.stop()
        return self._found

    def end(self) -> None:
        """Start reading what is left, after every source was placed."""
        if self._ended:
            return
        self._ended = True
        if self._everything:
            self._compare(self._stretch)
        else:
            # Two that are not adjacent are the last one before a gap, and the last source.
            chosen = {**self._first, **self._hashed, **dict(self._last)}
            self._compare({place: Kept(*one) for place, one in chosen.items()})

    def stop(self) -> None:
        """Start no further reads, and wait for the current one."""
        self._thread.shutdown(cancel_futures=True)

    def _choose(self, one: _Given, identity: bytes) -> None:
        place = self._count
        if place <= 2:
            self._first[place] = one
        if not self._least or identity < self._least:
            self._least, self._hashed = identity, {place: one}
        elif len(self._hashed) == 1 and place - 1 in self._hashed:
            self._hashed[place] = one
        self._last.append((place, one))

    def _follow(self, one: Kept, size: int) -> None:
        self._stretch[self._count] = one
        self._bytes += len(one.raw) + size
        many = len(self._stretch) >= self._stretch_sources
        full = many or self._bytes > _STRETCH_BYTES
        if full and (self._filled or self._bytes > _MOST_BYTES):
            self._compare(self._stretch)
            self._stretch, self._bytes = {self._count: one}, 0

    def _compare(self, kept: Mapping[int, Kept]) -> None:
        stretches: list[tuple[list[Kept], bool]] = []
        before = -1
        for place, one in sorted({**self._filled, **kept}.items()):
            if place != before + 1:
                stretches.append(([], True))
            stretches[-1][0].append(one)
            before = place
        if before == self._count and stretches:
            stretches[-1] = (stretches[-1][0], False)
        if stretches:
            # At most two stretches are held.
            self._wait()
            alone = self._count == 1
            self._under_way = self._thread.submit(self._differences, stretches, alone=alone)

    def _differences(self, stretches: Sequence[Stretch], *, alone: bool) -> Sequence[Difference]:
        return list(differences(stretches, self._frame, self._declared, alone=alone))

    def _wait(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            self._found += under_way.result()
