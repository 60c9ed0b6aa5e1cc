"""One partition on S3: what is stored, how requests are answered, and which events happen to it.

S3 is strongly consistent and answers one request at a time. The protocol relies on nothing else
but ``If-Match``, ``If-None-Match: *`` and the checksum of a completed upload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from tests.model.processes import NOTHING, Service, plain, request

GONE, TAKEN, WRONG, DONE = "gone", "taken", "wrong bytes", "done"
FLIPPED, FOREIGN = "flipped bytes", "another's"


class Entry(NamedTuple):
    """An entry of the commit log; one without a key has no output.

    Attributes:
        commit: its random id, which is also that of its upload.
        key: the key of its output.
        sources: the sources that it compacts.
        records: the records in its output.
        replaces: the number of the entry that it voids; 0 for none.
    """

    commit: str
    key: str = ""
    sources: frozenset[str] = NOTHING
    records: frozenset[str] = NOTHING
    replaces: int = 0

    def __str__(self) -> str:
        void = f" replaces {self.replaces}" if self.replaces else ""
        return f"{self.commit} of {plain(self.sources)}{void}"


HOLE = Entry("")


@cache
def replaced_in(log: tuple[Entry, ...]) -> frozenset[int]:
    return frozenset(entry.replaces for entry in log if entry.replaces)


@cache
def committed_in(log: tuple[Entry, ...]) -> frozenset[str]:
    """Return the sources that valid entries name."""
    return frozenset().union(*(one.sources for one in valid_in(log).values()))


def keys_of(sources: frozenset[str]) -> frozenset[str]:
    """Return the keys of sources: "a" for "a1" and "a2"."""
    return frozenset(one[0] for one in sources)


def valid_in(log: tuple[Entry, ...]) -> dict[int, Entry]:
    """Return the entries that no later one voids, by number."""
    return {n: one for n, one in enumerate(log, 1) if n not in replaced_in(log)}


def record_of(version: str) -> str:
    """Return the record of a source: a1' has that of a1, delivered again with another ETag."""
    return version.rstrip("'")


class World(NamedTuple):
    """What is stored, and what the model remembers of it.

    Attributes:
        sources: existing sources, named by the letter of their key and their version: "a1" or "a2".
            The name is both the ETag and the only record; but "a1'" has the record of "a1".
        written: every record that ever arrived.
        taken_back: records that their producer overwrote.
        log: entries by number, from 1; None for a missing one.
        checkpoint: the number through which the newest checkpoint sums up the log; 0 for none.
        uploads: open uploads: commit, key, and the bytes stored.
        outputs: readable outputs: key and bytes.
        aged: the number of the last entry that is older than the retention.
        aged_checkpoint: the number of the last checkpoint that is.
        committed: every commit that was ever written.
        spoiled: something happened after which a worker may stop.
        fault: what a request did that no request may do.
    """

    sources: frozenset[str] = frozenset({"a1"})
    written: frozenset[str] = frozenset({"a1"})
    taken_back: frozenset[str] = NOTHING
    log: tuple[Entry | None, ...] = ()
    checkpoint: int = 0
    uploads: frozenset[tuple[str, str, frozenset[str]]] = NOTHING
    outputs: frozenset[tuple[str, frozenset[str]]] = NOTHING
    aged: int = 0
    aged_checkpoint: int = 0
    committed: frozenset[str] = NOTHING
    spoiled: bool = False
    fault: str = ""


class S3(Service):
    """Answers requests as S3 does."""

    world: World

    @request
    def list_log(self) -> tuple[tuple[Entry | None, ...], int]:
        return self.world.log, self.world.checkpoint

    @request
    def list_sources(self) -> frozenset[str]:
        return self.world.sources

    @request
    def list_outputs(self) -> frozenset[str]:
        return frozenset(key for key, _ in self.world.outputs)

    @request
    def read_outputs(self) -> frozenset[str]:
        """Return the records that a query of the destination finds."""
        return frozenset().union(*(records for _, records in self.world.outputs))

    @request
    def get_source(self, version: str) -> str:
        """Return a source's record; empty if it is gone or overwritten."""
        if "If-Match on read" in self.without:
            there = (record_of(one) for one in self.world.sources if one[0] == version[0])
            return next(there, "")
        return record_of(version) if version in self.world.sources else ""

    @request
    def head_output(self, key: str) -> frozenset[str] | None:
        return dict(self.world.outputs).get(key)

    @request
    def store_upload(self, commit: str, key: str, records: frozenset[str]) -> None:
        self.now(uploads=self.world.uploads | {(commit, key, records)})

    @request
    def abort_upload(self, commit: str) -> None:
        self.now(uploads=frozenset(one for one in self.world.uploads if one[0] != commit))

    @request
    def create_entry(self, number: int, entry: Entry) -> str:
        missing = number - len(self.world.log)
        log = self.world.log + (None,) * missing
        if log[number - 1] is not None and "If-None-Match on commit" not in self.without:
            return TAKEN
        self.now(
            log=(*log[: number - 1], entry, *log[number:]),
            committed=self.world.committed | {entry.commit},
        )
        return DONE

    @request
    def create_checkpoint(self, number: int) -> None:
        self.now(checkpoint=max(self.world.checkpoint, number))

    @request
    def complete_upload(self, entry: Entry) -> str:
        stored = next((one for one in self.world.uploads if one[0] == entry.commit), None)
        if stored is None:
            return GONE
        there = dict(self.world.outputs).get(entry.key)
        if there is not None and "If-None-Match on publish" not in self.without:
            return TAKEN
        if stored[2] != entry.records and "checksum on publish" not in self.without:
            return WRONG
        kept = frozenset(one for one in self.world.outputs if one[0] != entry.key)
        self.now(uploads=self.world.uploads - {stored}, outputs=kept | {(entry.key, stored[2])})
        if there is not None:
            self.now(fault=f"output {entry.key} is written over another object")
        elif entry.commit not in self.world.committed:
            self.now(fault=f"output {entry.key} can be read, and no commit names it")
        elif stored[2] != entry.records:
            self.now(fault=f"output {entry.key} has other bytes than were read")
        return DONE

    @request
    def delete_source(self, version: str) -> None:
        ignored = "ETag on delete" in self.without
        kept = (
            one
            for one in self.world.sources
            if not (one == version or (ignored and one[0] == version[0]))
        )
        self.now(sources=frozenset(kept))


#: Requests that change what others see; they may arrive after their sender gave up.
WRITES = frozenset(
    {"abort_upload", "create_entry", "create_checkpoint", "complete_upload", "delete_source"}
)


# Events. Each yields every way in which it may happen now: a description, and the world after it.


def arrives(world: World, version: str) -> Iterator[tuple[str, World]]:
    """A producer puts a source, possibly overwriting another version."""
    before = frozenset(one for one in world.sources if one[0] == version[0])
    sources = world.sources - before | {version}
    written = world.written | {record_of(version)}
    taken_back = world.taken_back | set(map(record_of, before)) - {record_of(version)}
    after = world._replace(sources=sources, written=written, taken_back=taken_back)
    yield f"a producer puts {version}", after


def upload_aborted(world: World) -> Iterator[tuple[str, World]]:
    for one in world.uploads:
        words = f"the lifecycle rule aborts the upload of {one[0]}"
        yield words, world._replace(uploads=world.uploads - {one})


def bytes_flipped(world: World) -> Iterator[tuple[str, World]]:
    for one in world.uploads:
        uploads = world.uploads - {one} | {(one[0], one[1], one[2] | {FLIPPED})}
        words = f"bytes are flipped on their way to the upload of {one[0]}"
        yield words, world._replace(uploads=uploads, spoiled=True)


def key_taken(world: World) -> Iterator[tuple[str, World]]:
    for _, key, _ in world.uploads:
        if key not in dict(world.outputs):
            outputs = world.outputs | {(key, frozenset({FOREIGN}))}
            yield (
                f"somebody puts an object at {key}",
                world._replace(outputs=outputs, spoiled=True),
            )


EVENTS: dict[str, Callable[[World], Iterator[tuple[str, World]]]] = {
    one.__name__: one for one in (upload_aborted, bytes_flipped, key_taken)
}
