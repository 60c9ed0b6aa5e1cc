"""The promises that must hold after every step, judged only by what S3 shows.

Every record has its own number, and every version of a source (key and ETag) its own records. The
ledger knows what producers wrote, overwrote and deleted; it finds the records by reading the store,
as a query engine would, and never from a commit log.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping

import zstandard

from tests.simulation.contents import numbers
from tests.support.memory_store import MemoryStore

SOURCE, LAKE, DATA = "source", "lake", "compacted/"


class Violation(AssertionError):
    """A broken promise."""


def records_in(body: bytes) -> tuple[int, ...]:
    """Return the numbers of the records that a reader of the zoo finds in an object.

    An object that does not decompress has no records.

    Raises:
        Violation: records are glued, or one was never written.
    """
    try:
        plain = plain_bytes(body)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return ()
    try:
        return tuple(numbers(plain))
    except ValueError as error:
        raise Violation(str(error)) from error


def plain_bytes(body: bytes) -> bytes:
    """Return the decompressed content of an object."""
    if body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if body[:4] == b"\x28\xb5\x2f\xfd":
        frames = zstandard.ZstdDecompressor().stream_reader(
            io.BytesIO(body), read_across_frames=True
        )
        return frames.read()
    return body


class Ledger:
    """Checks a store after every step.

    Args:
        s3: the store to check.
        retention_seconds: how long sources must be kept after their output is readable.
    """

    def __init__(self, s3: MemoryStore, retention_seconds: float) -> None:
        self._s3 = s3
        self._retention_seconds = retention_seconds
        self._read: dict[bytes, tuple[int, ...]] = {}
        self._sources: Mapping[str, bytes] = {}
        # What was at a key before it was overwritten or deleted.
        self._earlier: defaultdict[str, list[bytes]] = defaultdict(list)
        self._outputs: Mapping[str, bytes] = {}
        self._in_outputs: Counter[int] = Counter()
        self._written: set[int] = set()
        # Removed from the source by their producer before any output had them.
        self._withdrawn: set[int] = set()
        # Records of kinds that must not be compacted.
        self._for_itself: set[int] = set()

    def written(self, body: bytes, *, joined: bool = True) -> None:
        """Record that a producer is about to put an object; call :meth:`look` afterwards.

        Args:
            body: the object's body.
            joined: it is of a kind that is compacted; others must be left alone.
        """
        self._written |= set(self._records(body))
        if not joined:
            self._for_itself |= set(self._records(body))

    def removing(self, key: str) -> None:
        """Record that a producer is about to overwrite or delete a source."""
        body = self._sources.get(key)
        if body is not None:
            self._earlier[key].append(body)
            self._withdrawn |= set(self._records(body)) - set(self._in_outputs)

    def tampering(self, key: str) -> None:
        """Record that an output is about to be overwritten or deleted by another program."""
        held = set(self._records(self._outputs[key]))
        self._withdrawn |= held - self._in_sources()
        self._in_outputs -= Counter(held)
        self._outputs = {name: body for name, body in self._outputs.items() if name != key}

    def producer_acted(self) -> None:
        """Accept the sources as they are now."""
        self._sources = self._s3.contents(SOURCE)

    def look(self) -> None:
        """Check every promise against what is readable now.

        Raises:
            Violation: a promise is broken; names the records.
        """
        sources, outputs = self._s3.contents(SOURCE), self._s3.contents(LAKE, DATA)
        if outputs != self._outputs:
            self._check_outputs(outputs)
        if sources != self._sources:
            self._check_deleted(set(self._sources) - set(sources))
            self._sources = sources
        lost = self._written - self._withdrawn - set(self._in_outputs) - self._in_sources()
        if lost:
            raise Violation(f"records {sorted(lost)} are neither in the source nor in an output")

    def missing(self) -> set[int]:
        """Return the records that are only in the source but belong into an output.

        What was put over a compacted object belongs into none.
        """
        compacted = set(self._in_outputs)
        candidates = (
            body
            for key, body in self._sources.items()
            if not any(compacted & set(self._records(earlier)) for earlier in self._earlier[key])
        )
        records = {number for body in candidates for number in self._records(body)}
        return records - compacted - self._for_itself

    def compacted_sources(self) -> set[str]:
        """Return the keys of sources with a record that an output has."""
        held = set(self._in_outputs)
        return {key for key, body in self._sources.items() if held & set(self._records(body))}

    def _check_outputs(self, outputs: Mapping[str, bytes]) -> None:
        found = Counter(n for body in outputs.values() for n in self._records(body))
        twice = sorted(number for number, count in found.items() if count > 1)
        if twice:
            raise Violation(f"records {twice} are readable twice")
        gone = sorted(set(self._in_outputs) - set(found))
        if gone:
            raise Violation(f"records {gone} were readable in an output and are no more")
        wrong = sorted(set(found) & self._for_itself)
        if wrong:
            raise Violation(f"records {wrong} are in an output, and must be left alone")
        unknown = sorted(set(found) - self._written)
        if unknown:
            raise Violation(f"records {unknown} were never written by anybody")
        self._outputs, self._in_outputs = outputs, found

    def _check_deleted(self, keys: set[str]) -> None:
        """Check that outputs have had the records of deleted sources for the retention."""
        for key in sorted(keys):
            self._earlier[key].append(self._sources[key])
            held = self._records(self._sources[key])
            if not held and self._sources[key]:
                raise Violation(f"{key} was deleted, and no output can hold what is in it")
            for number in held:
                self._check_retention(key, number)

    def _check_retention(self, key: str, number: int) -> None:
        for name, body in self._outputs.items():
            if number in self._records(body):
                head = self._s3.head(LAKE, name)
                assert head is not None
                if self._s3.clock.now() - head.last_modified < self._retention_seconds:
                    raise Violation(f"{key} was deleted before its retention had passed")
                return
        raise Violation(f"{key} was deleted, and no output holds record {number}")

    def _in_sources(self) -> set[int]:
        return {n for body in self._sources.values() for n in self._records(body)}

    def _records(self, body: bytes) -> tuple[int, ...]:
        if body not in self._read:
            self._read[body] = records_in(body)
        return self._read[body]
