"""Which files a Delta table consists of, and what replaced others, according to its log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sinks.contents import Contents, CurrentFiles, FileSet, History, TableChange
from compactor.table_formats.delta_actions import Add, Line, Protocol, Remove
from compactor.table_formats.delta_log import DeltaLog, rows_of

_ABSOLUTE = re.compile(r"s3[an]?://(.*)", re.DOTALL)


def delta_contents(location: S3Uri, store: ObjectStore, version: int, below: S3Uri) -> Contents:
    """Return the contents of a table at one version.

    Args:
        location: of the table.
        store: where its log is.
        version: number of the version.
        below: prefix of all outputs.
    """
    reader = _Reader(location, store, version)
    return Contents(below.uri, reader.current, reader.history)


class _Reader:
    def __init__(self, location: S3Uri, store: ObjectStore, version: int) -> None:
        self._log = DeltaLog(location, store)
        self._root = f"s3://{location.bucket}/{location.prefix}"
        self._version = version

    def current(self, wanted: Callable[[str], bool]) -> CurrentFiles:
        files: dict[str, Add] = {}
        protocol = Protocol()
        for lines in self._log.lines_at(self._version):
            added = {}
            for line in lines:
                if line.remove is not None:
                    files.pop(self._name(line.remove), None)
                elif line.add is not None and wanted(self._place(line.add)):
                    added[self._name(line.add)] = line.add
                elif line.protocol is not None:
                    protocol = line.protocol
            # The order of actions within one version has no meaning.
            files |= added
        self._log.require_readable(protocol)
        found = CurrentFiles()
        for name, one in files.items():
            found.whole.add(name)
            if one.deletion_vector is not None:
                rows = one.deletion_vector.cardinality
                found.partly[self._place(one)] = f"a deletion vector deletes {rows:,} of its rows"
        return found

    def history(self, history: History) -> None:
        rows: dict[bytes, int] = {}
        for version, lines in self._log.versions_until(self._version):
            change = self._change(version, lines, rows, history)
            if change is not None:
                history.take(change)

    def _change(
        self, version: int, lines: Iterable[Line], rows: dict[bytes, int], history: History
    ) -> TableChange | None:
        """Return what a version removed; ``rows`` has the row counts of all files in the table."""
        adds: list[Add] = []
        removes: list[Remove] = []
        operation = ""
        for line in lines:
            adds += [line.add] if line.add is not None else []
            removes += [line.remove] if line.remove is not None else []
            if line.commit_info is not None:
                operation = str(line.commit_info.operation or "")
        removed_rows = [self._rows_of(one, rows) for one in removes]
        for gone in removes:
            rows.pop(self._digest(gone), None)
        added_rows = [_live_rows(one) for one in adds]
        for one, count in zip(adds, added_rows, strict=True):
            if count is not None:
                rows[self._digest(one)] = count
        if not removes:
            return None
        changes = [one.data_change for one in adds] + [one.data_change for one in removes]
        rewrites = not any(changes)
        known = sum(one for one in removed_rows if one is not None)
        one_set = FileSet(
            [name for name in map(self._name, removes) if history.follows(name)],
            known if None not in removed_rows else None,
            known,
            [self._name(one) for one in adds] if rewrites else (),
            sum(one for one in added_rows if one is not None) if None not in added_rows else None,
        )
        suffix = f" ({operation})" if operation else ""
        return TableChange(f"version {version}{suffix}", rewrites, [one_set])

    def _rows_of(self, one: Remove, rows: dict[bytes, int]) -> int | None:
        known = rows.get(self._digest(one))
        return _live_rows(one) if known is None else known

    def _digest(self, one: Add | Remove) -> bytes:
        """Return a short key for a file, since a table may have millions of files."""
        name = self._name(one).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(name, digest_size=16).digest()

    def _name(self, one: Add | Remove) -> str:
        """Return a name that differs for the same file with another deletion vector."""
        vector = one.deletion_vector
        return self._place(one) if vector is None else f"{self._place(one)} {vector.id}"

    def _place(self, one: Add | Remove) -> str:
        """Return the URI of a file; paths in the log are URI-encoded (protocol, "Add File")."""
        path = unquote(one.path)
        absolute = _ABSOLUTE.fullmatch(path)
        return f"s3://{absolute[1]}" if absolute is not None else f"{self._root}{path}"


def _live_rows(one: Add | Remove) -> int | None:
    rows, vector = rows_of(one), one.deletion_vector
    return rows if rows is None or vector is None else rows - vector.cardinality
