"""Whether an output's rows are in a table, according to the table's own metadata (pure).

They are if the output is a data file of the current version and no delete applies to it, or if
commits that only rewrite files have replaced it by such files. Row counts prove nothing, because
others append too; neither does the fact that the output still exists on S3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from compactor.sinks.table_catalog import TableFile

_UNKNOWN = (
    "the history that the table still has does not show what replaced it: let snapshots and"
    " versions expire later than delete_after"
)


class FileSet(NamedTuple):
    """Files that one commit removed from a table, and the files that it added in their place.

    Attributes:
        removed: the removed files that are followed.
        removed_rows: rows of all removed files; None if the metadata does not say.
        known_rows: rows of those removed files whose count the metadata has.
        added: all added files; may be left out if the commit is not a rewrite.
        added_rows: rows of all added files; None if the metadata does not say.
    """

    removed: Sequence[str]
    removed_rows: int | None
    known_rows: int
    added: Sequence[str]
    added_rows: int | None


class TableChange(NamedTuple):
    """A commit that removed files from a table.

    Attributes:
        at: names the commit in messages, such as ``snapshot 12 (overwrite)``.
        rewrites: the commit declares that it changed no rows.
        sets: for a rewrite, the rows of each set balance on their own.
    """

    at: str
    rewrites: bool
    sets: Sequence[FileSet]


@dataclass(slots=True)
class CurrentFiles:
    """The requested files that are part of the current version.

    Attributes:
        whole: names of the files to which no delete applies.
        partly: for each of the others, what applies to it, for messages.
    """

    whole: set[str] = field(default_factory=set)
    partly: dict[str, str] = field(default_factory=dict)


class History:
    """Follows removed files through later rewrites, from the oldest change to the newest.

    Args:
        is_ours: returns True for the names to start from: this destination's outputs.
    """

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        self._is_ours = is_ours
        self._rewrites: list[tuple[str, FileSet]] = []
        self._removed_by: dict[str, str] = {}
        self.carriers: set[str] = set()

    def follows(self, name: str) -> bool:
        """Return True for outputs, and for files that a rewrite moved their rows to."""
        return name in self.carriers or self._is_ours(name)

    def take(self, change: TableChange) -> None:
        """Add the next change."""
        for one in change.sets:
            if not one.removed:
                continue
            fault = _fault_of(change, one)
            if fault:
                self._removed_by.update(dict.fromkeys(one.removed, fault))
            else:
                self._rewrites.append((change.at, one))
                self.carriers.update(one.added)

    def faults(self, current: CurrentFiles) -> dict[str, str]:
        """Return, for each removed file, why not all its rows are in the table; empty if they are.

        Args:
            current: the current version's files, including :attr:`carriers`.
        """
        faults: dict[str, str] = {}
        for name, fault in self._removed_by.items():
            faults[name] = fault
        # Newest first: a file that a rewrite added may itself have been replaced later.
        for at, one in reversed(self._rewrites):
            found = _first_fault(one.added, current, faults)
            for name in one.removed:
                if not found:
                    faults[name] = ""
                elif faults.get(name) is None:
                    faults[name] = f"{at} rewrote it, and of what took its rows: {found}"
        return faults


def _fault_of(change: TableChange, one: FileSet) -> str:
    """Return why a change did more than rewrite these files; empty if it did not."""
    if not change.rewrites:
        return f"{change.at} removed it"
    added, removed = one.added_rows, one.removed_rows
    is_less = added is not None and added < one.known_rows
    if is_less or (added is not None and removed is not None and added != removed):
        return f"{change.at} replaced files of {one.known_rows:,} rows by {added:,} rows"
    return ""


def _first_fault(names: Iterable[str], current: CurrentFiles, faults: dict[str, str]) -> str:
    for name in names:
        if name in current.whole:
            continue
        fault = current.partly.get(name) or faults.get(name, _UNKNOWN)
        if fault:
            return fault
    return ""


class Contents:
    """Implements :class:`compactor.sinks.table_catalog.TableContents` over a metadata reader.

    Metadata is read on first use: the current version, and the history only for outputs that are
    not in it. Safe to use from several threads.

    Args:
        prefix: URI prefix of all outputs.
        read_current: returns the current version's files whose names match a predicate.
        read_history: passes the changes that the table still has to a history, oldest first.
    """

    def __init__(
        self,
        prefix: str,
        read_current: Callable[[Callable[[str], bool]], CurrentFiles],
        read_history: Callable[[History], None],
    ) -> None:
        self._prefix = prefix
        self._read_current = read_current
        self._read_history = read_history
        self._current: CurrentFiles | None = None
        self._faults: dict[str, str] | None = None
        self._lock = Lock()

    def names(self, file: TableFile) -> bool:
        """See the port."""
        with self._lock:
            current = self._looked()
        return file.uri in current.whole or file.uri in current.partly

    def fault_of(self, file: TableFile) -> str:
        """See the port."""
        with self._lock:
            current = self._looked()
            if file.uri in current.whole:
                return ""
            if self._faults is None:
                self._faults = self._followed()
        found = (current.partly.get(file.uri), self._faults.get(file.uri))
        if found == (None, ""):
            return ""
        return "; ".join(one for one in found if one) or _UNKNOWN

    def _looked(self) -> CurrentFiles:
        if self._current is None:
            self._current = self._read_current(self._is_ours)
        return self._current

    def _followed(self) -> dict[str, str]:
        history = History(self._is_ours)
        self._read_history(history)
        carriers = history.carriers
        current = self._read_current(carriers.__contains__) if carriers else CurrentFiles()
        return history.faults(current)

    def _is_ours(self, name: str) -> bool:
        return name.startswith(self._prefix)
