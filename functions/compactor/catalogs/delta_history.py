"""What the history of a Delta table shows: the outputs it was given, and its past columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import unquote

from deltalake import Schema

from compactor.catalogs.delta_columns import names_of
from compactor.errors import ObjectMissing
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sinks.table_catalog import Holdings
from compactor.table_formats.delta_actions import Line, lines_of_json
from compactor.table_formats.delta_log import LOG

_READERS = 16


class Version(NamedTuple):
    """One version of a table's log."""

    number: int
    lines: Sequence[Line]

    @property
    def operation(self) -> str:
        """The writer's operation, in upper case; empty if it is not recorded."""
        found = (str(one.commit_info.operation) for one in self.lines if one.commit_info)
        return next(found, "").upper()

    @property
    def is_first(self) -> bool:
        """True for a version that keeps no files of earlier ones."""
        return self.operation.startswith(("CREATE OR REPLACE", "REPLACE"))

    @property
    def before(self) -> int | None:
        """The version that it was made from; None if a RESTORE does not name it."""
        if self.operation != "RESTORE":
            return self.number - 1
        versions = [one.commit_info.parameter("version") for one in self.lines if one.commit_info]
        text = str(versions[0])
        return int(text) if text.isdecimal() else None

    def transaction(self, application: str) -> int | None:
        """Return the version that it records for an application; None if it has none."""
        found = (one.txn for one in self.lines if one.txn and one.txn.app_id == application)
        return next((one.version for one in found), None)


class DeltaHistory:
    """The versions that a table's current version was made from.

    Args:
        location: of the table.
        store: where its log is.
    """

    def __init__(self, location: S3Uri, store: ObjectStore) -> None:
        self._location = location
        self._store = store

    def ancestors(
        self, version: int, until: Callable[[Version], bool]
    ) -> tuple[list[Version], bool]:
        """Return the versions from ``version`` back to the one to stop at, newest first.

        Versions that a RESTORE undid are left out.

        Args:
            version: the current one.
            until: True for the version to stop at.

        Returns:
            The versions, and True if the last of them is the one to stop at or the first of the
            log; False if the log no longer goes back that far.
        """
        found: list[Version] = []
        ahead: dict[int, Version | None] = {}
        at: int | None = version
        while at is not None:
            if at not in ahead:
                ahead = self._read_some(at)
            one = ahead[at]
            if one is None:
                return found, False
            found.append(one)
            if until(one) or not one.number:
                return found, True
            at = one.before
        return found, False

    def _read_some(self, last: int) -> dict[int, Version | None]:
        numbers = range(last, max(last - _READERS, -1), -1)
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(numbers, pool.map(self._read, numbers), strict=True))

    def _read(self, version: int) -> Version | None:
        key = f"{self._location.prefix}{LOG}{version:020}.json"
        try:
            body = self._store.get(self._location.bucket, key)
        except ObjectMissing:
            return None
        return Version(version, list(lines_of_json(body)))

    def holdings(
        self, version: int, application: str, files: Any, outputs: Collection[str]
    ) -> Holdings:
        """Return which outputs a table has; implements :class:`TableCatalog`'s method.

        Args:
            version: the current one.
            application: whose transactions hold our entry numbers.
            files: ``path`` and ``num_records`` of each data file, as an Arrow table.
            outputs: their URIs.
        """
        wanted = frozenset(outputs)
        versions, is_whole = self.ancestors(
            version, lambda one: one.is_first or one.transaction(application) is not None
        )
        number = versions[-1].transaction(application) or 0 if is_whole else None
        added = {
            uri
            for one in versions
            if one.transaction(application) is None
            for line in one.lines
            if line.add is not None
            for uri in self._uris(line.add.path)
        }
        rows = dict(zip(files["path"].to_pylist(), files["num_records"].to_pylist(), strict=True))
        ours = {path: wanted & self._uris(path) for path in rows}
        present = frozenset().union(*ours.values())
        others = [path for path, found in ours.items() if not found]
        return Holdings(
            present=present,
            passed=(wanted & added) - present,
            number=number,
            others=len(others),
            other_rows=sum(rows[path] or 0 for path in others),
        )

    def past_columns(self, version: int, columns: Schema) -> dict[str, str]:
        """Return what became of each column that the table no longer has, as far as the log shows.

        Without column mapping, which is refused, a table can rename or drop columns only by a new
        schema for all its files.

        Args:
            version: the current one.
            columns: of that version.

        Returns:
            A phrase by the column's name in lower case.
        """
        now = {name.lower() for name in names_of(columns)}
        found: dict[str, str] = {}
        after = version + 1
        for one in self.ancestors(version, lambda _: False)[0]:
            for line in one.lines:
                if line.meta_data is not None:
                    had = names_of(Schema.from_json(line.meta_data.schema_string))
                    lost = {name.lower() for name in had} - now
                    found |= dict.fromkeys(
                        lost - found.keys(), f"dropped or renamed in version {after}"
                    )
                    after = one.number
        return found

    def _uris(self, path: str) -> set[str]:
        """Return both readings of a path: the protocol has URIs, but some writers do not encode."""
        place = f"s3://{self._location.bucket}/{self._location.prefix}"
        return {f"{place}{text}" for text in (path, unquote(path))}
