"""Stores the progress of a discovery below its run's prefix if it takes several invocations.

    discovery/partitions.json      the partitions' prefixes, and what the first invocation found
    discovery/pieces/000001.json   a piece: what a later invocation found

They are created, never overwritten: if two invocations do the same work, the first one counts.
The work lists are written after the last piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from compactor.decoding import decoder, numbered, require_version
from compactor.discovery.counting import Tally
from compactor.discovery.location_checks import NamedLevels
from compactor.discovery.work_items import RUN_VERSION, WorkItem
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
from compactor.layout import run_key
from compactor.log.resting import NONE_AT_REST, Resting
from compactor.model import Skipped
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_PARTITIONS_NAME = "discovery/partitions.json"
_PIECES_PREFIX = "discovery/pieces/"
_T = TypeVar("_T")


class Piece(msgspec.Struct):
    """What one invocation found.

    Attributes:
        start: number of its first partition.
        end: number of the first partition after the piece.
        items: partitions that one worker can take.
        oversized: partitions for Spark.
        objects: objects counted in its partitions.
        lost: sources in levels that name a column.
        unpartitioned: objects that are in no partition.
        open: incomplete counts of partitions from ``end`` on, by number.
        resting: its partitions at rest, which have no work items.
    """

    start: int
    end: int
    items: list[WorkItem]
    oversized: list[WorkItem]
    objects: int
    lost: NamedLevels
    unpartitioned: Skipped
    open: dict[int, Tally]
    resting: Resting = NONE_AT_REST


class Partitions(msgspec.Struct):
    """The partitions of a run, numbered from 0.

    Attributes:
        prefixes: source prefixes of the partitions.
        first: what the invocation that found them counted.
    """

    prefixes: list[str]
    first: Piece


_decode_partitions = decoder(Partitions)
_decode_piece = decoder(Piece)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Reads and writes the pieces of one run."""

    settings: Settings
    run_id: str
    store: ObjectStore

    def partitions(self) -> Partitions | None:
        """Return what the first invocation stored; None if there is nothing yet."""
        with suppress(ObjectMissing):
            return self._read(_PARTITIONS_NAME, _decode_partitions)
        return None

    def begin(self, partitions: Partitions) -> Partitions:
        """Store what the first invocation found.

        Returns:
            What is stored: another invocation's result if that was first.
        """
        with suppress(AlreadyExists):
            self._create(_PARTITIONS_NAME, partitions)
        return self._read(_PARTITIONS_NAME, _decode_partitions)

    def add(self, number: int, piece: Piece) -> None:
        """Store a piece, unless another invocation has already stored that number."""
        with suppress(AlreadyExists):
            self._create(_piece_name(number), piece)

    def last(self, partitions: Partitions) -> tuple[int, Piece]:
        """Return the last piece and its number."""
        number = self._count()
        return number, self._piece(number) if number else partitions.first

    def all(self, partitions: Partitions) -> Iterator[Piece]:
        """Yield every piece in order, with one at a time in memory.

        Raises:
            IntegrityError: a piece is missing.
        """
        yield partitions.first
        end = partitions.first.end
        for number in range(1, self._count() + 1):
            piece = self._piece(number)
            if piece.start != end:
                raise IntegrityError(
                    f"a piece of the discovery, {_piece_name(number)}, begins at {piece.start},"
                    f" and not at {end}"
                )
            yield piece
            end = piece.end

    def _count(self) -> int:
        bucket, prefix = run_key(self.settings, self.run_id, _PIECES_PREFIX)
        return sum(len(page) for page in self.store.list_objects(bucket, prefix))

    def _piece(self, number: int) -> Piece:
        try:
            return self._read(_piece_name(number), _decode_piece)
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


def _piece_name(number: int) -> str:
    return f"{_PIECES_PREFIX}{number:06}.json"
