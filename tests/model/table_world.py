"""A table, its log and the commit log of one partition, and the events that happen to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.model.processes import NOTHING, Service, request

DONE, TAKEN = "done", "taken"


class Commit(NamedTuple):
    """An entry of the partition's commit log; one without an output only voids another."""

    output: str
    replaces: int = 0

    def __str__(self) -> str:
        return self.output + (f" replaces {self.replaces}" if self.replaces else "")


class Entry(NamedTuple):
    """An entry of the table log: outputs, and the number of the last commit that they cover."""

    name: str
    outputs: tuple[str, ...]
    reached: int

    def __str__(self) -> str:
        return f"{self.name} of {' '.join(self.outputs)}"


class Snapshot(NamedTuple):
    """A snapshot: files by name with their records, its operation, and its parent."""

    files: tuple[tuple[str, tuple[str, ...]], ...] = ()
    operation: str = "append"
    parent: int = -1
    expired: bool = False

    @property
    def records(self) -> list[str]:
        return [record for _, records in self.files for record in records]


class Table(NamedTuple):
    """A table.

    Attributes:
        snapshots, current: all snapshots, and the index of the current one.
        last, ours: the last entry of the table log that it has, and the snapshot that set this.
        version: the version of the metadata, new after each change.
    """

    snapshots: tuple[Snapshot, ...] = (Snapshot(),)
    current: int = 0
    last: int = 0
    ours: int = 0
    version: int = 0

    def __str__(self) -> str:
        files = " ".join(name for name, _ in self.now.files) or "no file"
        return f"version {self.version} with {files}, everything up to {self.last}"

    def changed(self, **changed: Any) -> Table:
        return self._replace(version=self.version + 1, **changed)

    @property
    def now(self) -> Snapshot:
        return self.snapshots[self.current]

    @property
    def is_rolled_back(self) -> bool:
        at = self.current
        while at > self.ours:
            at = self.snapshots[at].parent
        return self.last > 0 and at != self.ours

    def with_snapshot(self, files: Any, operation: str, **said: int) -> Table:
        made = Snapshot(tuple(sorted(files)), operation, self.current)
        return self.changed(snapshots=(*self.snapshots, made), current=len(self.snapshots), **said)

    def has_rows_of(self, file: str, *, any_change: bool) -> bool:
        """Return whether the table has the file, or the files that it was rewritten into."""
        if file in dict(self.now.files):
            return True
        return any(
            all(self.has_rows_of(one, any_change=any_change) for one in added)
            for removed, added, is_rewrite in self._changes()
            if file in removed and (is_rewrite or any_change)
        )

    def _changes(self) -> Iterator[tuple[set[str], set[str], bool]]:
        for one in self.snapshots:
            if one.parent >= 0 and not one.expired:
                before, after = dict(self.snapshots[one.parent].files), dict(one.files)
                added = after.keys() - before.keys()
                yield before.keys() - after.keys(), added, one.operation == "replace"


class World(NamedTuple):
    """What is stored, and what the model remembers of it.

    Attributes:
        sources: records that are still in their sources. Output "a" has the record "a".
        commits: the partition's commit log.
        uploads: numbers of commits whose upload is open.
        outputs: outputs that can be read.
        log: the table log.
        mark: the highest number that was seen in the table.
        removed: records that users removed from the table.
        foreign: records that others wrote.
        spoiled: something happened after which a publisher may stop.
    """

    sources: frozenset[str] = NOTHING
    commits: tuple[Commit, ...] = ()
    uploads: frozenset[int] = NOTHING
    outputs: frozenset[str] = NOTHING
    log: tuple[Entry, ...] = ()
    mark: int = 0
    table: Table = Table()
    removed: frozenset[str] = NOTHING
    foreign: frozenset[str] = NOTHING
    spoiled: bool = False
    fault: str = ""


class Services(Service):
    """S3 and the catalog of the table."""

    world: World

    @request
    def list_commits(self) -> tuple[Commit, ...]:
        return self.world.commits

    @request
    def head_commit(self, number: int) -> Commit | None:
        return self.world.commits[number - 1] if number <= len(self.world.commits) else None

    @request
    def head_output(self, output: str) -> bool:
        return output in self.world.outputs

    @request
    def list_log(self) -> tuple[tuple[Entry, ...], int]:
        return self.world.log, self.world.mark

    @request
    def create_entry(self, number: int, entry: Entry) -> str:
        log = self.world.log
        if number <= len(log) and "create-if-absent of entries" not in self.without:
            return TAKEN
        self.now(log=(*log[: number - 1], entry, *log[number:]))
        return DONE

    @request
    def create_mark(self, number: int) -> None:
        self.now(mark=max(self.world.mark, number))

    @request
    def load_table(self) -> Table:
        return self.world.table

    @request
    def swap_table(self, read: Table, outputs: tuple[str, ...], number: int) -> str:
        """Commit files and the number, on condition that the metadata is as it was read."""
        table = self.world.table
        if "condition on metadata" in self.without:
            is_same = table.current == read.current
        else:
            is_same = table.version == read.version
        if not is_same and "condition of the table's commit" not in self.without:
            return TAKEN
        files = (*table.now.files, *((one, (one,)) for one in outputs))
        made = len(table.snapshots)
        self.now(table=table.with_snapshot(files, "append", last=number, ours=made))
        return DONE

    @request
    def publish_output(self, number: int) -> bool:
        """Complete the upload of a commit, if open; return whether its output can be read."""
        output = self.world.commits[number - 1].output
        if number in self.world.uploads:
            uploads = self.world.uploads - {number}
            self.now(uploads=uploads, outputs=self.world.outputs | {output})
        return output in self.world.outputs

    @request
    def rebuild_output(self, number: int) -> None:
        """Commit a replacement of a lost output; it is published later."""
        output = self.world.commits[number - 1].output
        if output in self.world.sources and number not in replaced_in(self.world.commits):
            commits = (*self.world.commits, Commit(output, number))
            self.now(commits=commits, uploads=self.world.uploads | {len(commits)})

    @request
    def delete_source(self, record: str) -> None:
        self.now(sources=self.world.sources - {record})


WRITES = frozenset({"create_entry", "create_mark", "swap_table", "delete_source"})


def replaced_in(commits: tuple[Commit, ...]) -> dict[int, int]:
    """Return number of a replaced commit -> number of its replacement."""
    return {one.replaces: number for number, one in enumerate(commits, 1) if one.replaces}


# Events. Each yields every way in which it may happen: a description, and what it changes.
Ways = Iterator[tuple[str, dict[str, Any]]]


def output_committed(world: World) -> Ways:
    output = chr(ord("a") + len({one.output for one in world.commits}))
    commits = (*world.commits, Commit(output))
    changed = {"commits": commits, "uploads": world.uploads | {len(commits)}}
    yield f"a worker commits output {output}", changed | {"sources": world.sources | {output}}


def upload_aborted(world: World) -> Ways:
    for number in world.uploads:
        words = f"the lifecycle rule aborts the upload of commit {number}"
        yield words, {"uploads": world.uploads - {number}}


def others_append(world: World) -> Ways:
    table, record = world.table, _next_foreign(world)
    made = table.with_snapshot((*table.now.files, (record, (record,))), "append")
    yield f"others append {record}", {"table": made, "foreign": world.foreign | {record}}


def table_compacted(world: World) -> Ways:
    table = world.table
    if table.now.files:
        files = [(f"file {len(table.snapshots)}", tuple(sorted(table.now.records)))]
        yield "others compact the table", {"table": table.with_snapshot(files, "replace")}


def file_overwritten(world: World) -> Ways:
    """A user overwrites a file with as many rows as it had."""
    table, record = world.table, _next_foreign(world)
    for file in table.now.files:
        files = [*(one for one in table.now.files if one != file), (record, (record,))]
        changed = {"removed": world.removed | set(file[1]), "foreign": world.foreign | {record}}
        made = table.with_snapshot(files, "overwrite")
        yield f"a user overwrites {file[0]} with {record}", changed | {"table": made}


def snapshots_expired(world: World) -> Ways:
    """All other snapshots expire; files that none names are deleted, our outputs included."""
    table = world.table
    snapshots = tuple(one._replace(expired=True) for one in table.snapshots)
    snapshots = (*snapshots[: table.current], table.now, *snapshots[table.current + 1 :])
    ever = {file for one in table.snapshots for file, _ in one.files}
    outputs = world.outputs - (ever - dict(table.now.files).keys())
    changed = {"table": table.changed(snapshots=snapshots), "outputs": outputs}
    yield "the table's snapshots expire", changed


def rolled_back(world: World) -> Ways:
    """The parent snapshot becomes current again; the number stays as it is."""
    table = world.table
    if table.now.parent >= 0 and not table.snapshots[table.now.parent].expired:
        made = table.changed(current=table.now.parent)
        gone = set(table.now.records) - set(made.now.records)
        changed = {"removed": world.removed | gone, "spoiled": True}
        yield "a user rolls the table back", changed | {"table": made}


def brought_back(world: World) -> Ways:
    """The table is as it was before the first publication, its number included."""
    if world.table.last:
        removed = world.removed | set(world.table.now.records)
        made = world.table.changed(current=0, last=0, ours=0)
        changed = {"removed": removed, "spoiled": True, "table": made}
        yield "a user brings back the table of a week ago", changed


def _next_foreign(world: World) -> str:
    return f"x{len(world.foreign) + 1}"


EVENTS: dict[str, Callable[[World], Ways]] = {
    one.__name__: one
    for one in (
        *(output_committed, upload_aborted, others_append, table_compacted, file_overwritten),
        *(snapshots_expired, rolled_back, brought_back),
    )
}
