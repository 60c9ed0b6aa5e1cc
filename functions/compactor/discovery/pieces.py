"""What a discovery leaves below its run's prefix when one invocation cannot do all of it.

    discovery/division.json                       into how many stretches the partitions are divided
    discovery/<name>/000001.json                  a stretch: its partitions' prefixes
    discovery/<name>/000001-000000.json           a piece: what one invocation found in it
    discovery/<name>/ranges.json                  likewise of the partitions that were left in it

What is left of a partition is divided into ranges of its keys, in a division of its own, and what
is left of these in one more.

Pieces and the division are created, never overwritten: of two invocations that do the same, the
first one counts. Nothing is a work list before the last piece of the last stretch is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from compactor.decoding import decoder, numbered, require_version
from compactor.discovery.counting import Tally
from compactor.discovery.places import NamedLevels
from compactor.discovery.work import RUN_VERSION, WorkItem
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
from compactor.layout import run_key
from compactor.log.at_rest import NOBODY, Resting
from compactor.model import Skipped
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_PREFIX = "discovery/"
_DIVISION_NAME = f"{_PREFIX}division.json"
_T = TypeVar("_T")


class Division(msgspec.Struct):
    """How the partitions of a run are divided.

    Attributes:
        name: of the prefix of stretches and pieces; a digest of what it held at first.
        partitions: in all.
        stretches: after stretch 0, which is what the first invocation found.
        shared: the stretches are counted at the same time.
        ranges: they are ranges of the keys of partitions.
    """

    name: str
    partitions: int
    stretches: int
    shared: bool
    ranges: bool = False


class Stretch(msgspec.Struct):
    """Consecutive partitions, or ranges of some.

    Attributes:
        prefixes: of their sources; of ranges, those of their partitions.
        open: counts that were begun, by the partition's number in the stretch; of ranges all.
    """

    prefixes: list[str]
    open: dict[int, Tally]


class Piece(msgspec.Struct):
    """What one invocation found.

    Attributes:
        start: number of its first partition in the stretch.
        end: number of the first one behind it.
        objects: of its partitions, as counted.
        lost: sources in levels that name a column.
        unpartitioned: objects that no partition holds.
        open: counts behind ``end`` that were begun.
        resting: its partitions that are at rest, which are no items.
        counts: of its ranges, which are no items either.
    """

    start: int
    end: int
    items: list[WorkItem]
    oversized: list[WorkItem]
    objects: int
    lost: NamedLevels
    unpartitioned: Skipped
    open: dict[int, Tally]
    resting: Resting = NOBODY
    counts: list[Tally] = []


_decode_division = decoder(Division)
_decode_stretch = decoder(Stretch)
_decode_piece = decoder(Piece)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Reads and writes them, for one run."""

    settings: Settings
    run_id: str
    store: ObjectStore

    def division(self) -> Division | None:
        """None while nothing is divided."""
        with suppress(ObjectMissing):
            return self._read(_DIVISION_NAME, _decode_division)
        return None

    def ranges(self, division: Division) -> Division | None:
        """How the partitions that were left in a division are divided; None while they are not."""
        with suppress(ObjectMissing):
            return self._read(_ranges_name(division), _decode_division)
        return None

    def divide(self, first: Piece, stretches: Sequence[Stretch], *, shared: bool) -> Division:
        """Write what was found, the stretches that are left, and the division: now it counts.

        Returns:
            The division that counts: another one where another invocation was here before.
        """
        documents = [msgspec.json.encode(numbered(one, RUN_VERSION)) for one in stretches]
        name = _digest([msgspec.json.encode(first), *documents])
        partitions = first.end + sum(len(one.prefixes) for one in stretches)
        division = Division(name, partitions, len(stretches), shared)
        self._put_stretches(division, documents)
        self.add(division, 0, 0, first)
        return self._first_of(_DIVISION_NAME, division)

    def divide_further(
        self, division: Division, stretches: Sequence[Stretch], *, shared: bool
    ) -> Division:
        """The same of the ranges of what was left in a division."""
        documents = [msgspec.json.encode(numbered(one, RUN_VERSION)) for one in stretches]
        count = sum(len(one.prefixes) for one in stretches)
        further = Division(_digest(documents), count, len(stretches), shared, ranges=True)
        self._put_stretches(further, documents)
        return self._first_of(_ranges_name(division), further)

    def _put_stretches(self, division: Division, documents: Sequence[bytes]) -> None:
        for number, body in enumerate(documents, 1):
            self._put(f"{_PREFIX}{division.name}/{number:06}.json", body)

    def _first_of(self, name: str, division: Division) -> Division:
        with suppress(AlreadyExists):
            self._create(name, division)
        return self._read(name, _decode_division)

    def stretch(self, division: Division, number: int) -> Stretch:
        """One stretch, from 1."""
        return self._read(f"{_PREFIX}{division.name}/{number:06}.json", _decode_stretch)

    def add(self, division: Division, stretch: int, number: int, piece: Piece) -> None:
        """Store a piece; in vain where another invocation was here before."""
        with suppress(AlreadyExists):
            self._create(_piece_name(division, stretch, number), piece)

    def last(self, division: Division, stretch: int) -> tuple[int, Piece | None]:
        """How many pieces of a stretch there are, and the last of them."""
        count = len(self._names(division, stretch))
        piece = self._piece(division, stretch, count - 1) if count else None
        return count, piece

    def of(self, division: Division, stretch: int) -> Iterator[Piece]:
        """The pieces of a stretch, in order, one at a time in memory.

        Raises:
            IntegrityError: one of them is gone.
        """
        end = 0
        for number in range(len(self._names(division, stretch))):
            piece = self._piece(division, stretch, number)
            if piece.start != end:
                where = _piece_name(division, stretch, number)
                raise IntegrityError(
                    f"a piece of the discovery, {where}, begins at {piece.start}, and not at {end}"
                )
            yield piece
            end = piece.end

    def _names(self, division: Division, stretch: int) -> list[str]:
        bucket, prefix = run_key(self.settings, self.run_id, _pieces_prefix(division, stretch))
        return [one.key for page in self.store.list_objects(bucket, prefix) for one in page]

    def _piece(self, division: Division, stretch: int, number: int) -> Piece:
        try:
            return self._read(_piece_name(division, stretch, number), _decode_piece)
        except ObjectMissing as error:
            raise IntegrityError(f"a piece of the discovery is gone: {error}") from error

    def _read(self, name: str, decode: Callable[[bytes], _T]) -> _T:
        bucket, key = run_key(self.settings, self.run_id, name)
        body = self.store.get(bucket, key)
        require_version(f"s3://{bucket}/{key}", body, RUN_VERSION)
        try:
            return decode(body)
        except (msgspec.MsgspecError, ValueError) as error:
            raise IntegrityError(f"s3://{bucket}/{key} cannot be read: {error}") from error

    def _create(self, name: str, document: msgspec.Struct) -> None:
        body = msgspec.json.encode(numbered(document, RUN_VERSION))
        place = run_key(self.settings, self.run_id, name)
        self.store.create(*place, body, content_type="application/json")

    def _put(self, name: str, body: bytes) -> None:
        place = run_key(self.settings, self.run_id, name)
        self.store.put(*place, body, content_type="application/json")


def _digest(bodies: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for body in bodies:
        digest.update(body)
    return digest.hexdigest()


def _ranges_name(division: Division) -> str:
    return f"{_PREFIX}{division.name}/ranges.json"


def _pieces_prefix(division: Division, stretch: int) -> str:
    return f"{_PREFIX}{division.name}/{stretch:06}-"


def _piece_name(division: Division, stretch: int, number: int) -> str:
    return f"{_pieces_prefix(division, stretch)}{number:06}.json"


def open_counts(counted: Mapping[int, Tally], end: int) -> dict[int, Tally]:
    """Those at or behind a partition of which something is known."""
    return {number: one for number, one in counted.items() if number >= end and one.begun}
