"""What the history of a Delta table shows: which outputs it was given, and its past columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from compactor.catalogs.delta_actions import Line, lines_of_json
from compactor.catalogs.delta_log import LOG
from compactor.errors import ObjectMissing
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.tables.port import Holdings


class Version(NamedTuple):
    """One version of a table's log."""

    number: int
    lines: Sequence[Line]

    @property
    def operation(self) -> str:
        """What its writer did, in capitals; empty where that is not said."""
        found = (str(one.commit_info.operation) for one in self.lines if one.commit_info)
        return next(found, "").upper()

    @property
    def is_first(self) -> bool:
        """True for a version that owes nothing to those before it."""
        return not self.number or self.operation.startswith(("CREATE OR REPLACE", "REPLACE"))

    @property
    def before(self) -> int | None:
        """The version that it was made from; None where a RESTORE does not say."""
        if self.operation != "RESTORE":
            return self.number - 1
        told = [one.commit_info.parameter("version") for one in self.lines if one.commit_info]
        text = str(told[0])
        return int(text) if text.isdecimal() else None

    def transaction(self, application: str) -> int | None:
        """The number that it has of an application."""
        found = (one.txn for one in self.lines if one.txn and one.txn.app_id == application)
        return next((one.version for one in found), None)


class DeltaHistory:
    """The versions that a table's present one was made from.

    Args:
        location: of the table.
        store: where its log lies.
    """

    def __init__(self, location: S3Uri, store: ObjectStore) -> None:
        self._location = location
        self._store = store

    def ancestors(
        self, version: int, until: Callable[[Version], bool]
    ) -> tuple[list[Version], bool]:
        """The versions from one on, back to the one at which to end, newest first.

        What a RESTORE took back is left out.

        Args:
            version: the present one.
            until: True for the version at which to end.

        Returns:
            The versions, and whether the last one is that, or the first of the table; False where
            the log no longer has them.
        """
        found: list[Version] = []
        at: int | None = version
        while at is not None:
            one = self._read(at)
            if one is None:
                return found, False
            found.append(one)
            if until(one) or one.is_first:
                return found, True
            at = one.before
        return found, False

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
        """Which outputs a table has; see :class:`compactor.tables.port.TableCatalog`.

        Args:
            version: the present one.
            application: by which our commits have their number.
            files: the ``path`` and ``num_records`` of each data file, as a table of Arrow.
            outputs: their URIs.
        """
        wanted = frozenset(outputs)
        versions, is_whole = self.ancestors(
            version, lambda one: one.transaction(application) is not None
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

    def _uris(self, path: str) -> set[str]:
        """Paths of the log are URIs, by its protocol; some writers do not encode them."""
        place = f"s3://{self._location.bucket}/{self._location.prefix}"
        return {f"{place}{text}" for text in (path, unquote(path))}
