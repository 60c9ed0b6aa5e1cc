"""Reads the commits of a Delta table from the files of its log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations

from compactor_spark.upsert.engines import cause_of

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit.

    Attributes:
        number: its version.
        info: its ``commitInfo``.
        adds, removes: data files that were added, and that were removed.
    """

    number: int
    info: Action
    adds: Sequence[Action]
    removes: Sequence[Action]

    @property
    def says(self) -> str:
        """The ``userMetadata`` that its writer recorded."""
        return str(self.info.get("userMetadata") or "")

    def metric(self, name: str) -> int | None:
        """Return an operation metric of the commit; None if its writer did not record it."""
        given = (self.info.get("operationMetrics") or {}).get(name)
        return None if given is None else int(given)


@dataclass(slots=True)
class DeltaEntries:
    """The commits of one table; each is read once, except by :meth:`again`.

    Args:
        log: the ``DeltaLog``.
        jvm: of the session.
    """

    log: Any
    jvm: Any
    _read: dict[int, Entry | None] = field(default_factory=dict, init=False)

    def back_from(self, number: int) -> Iterator[Entry | None]:
        """Yield commits from this one back to the first; None, at the end, for a deleted one."""
        while number >= 0:
            entry = self.entry(number)
            yield entry
            if entry is None:
                return
            number -= 1

    def entry(self, number: int) -> Entry | None:
        """Return a commit; None if the log no longer has it."""
        if number not in self._read:
            self._read[number] = self._fetch(number)
        return self._read[number]

    def again(self, number: int) -> Entry | None:
        """Re-read a commit: a driver that commits by plain PUTs can overwrite it."""
        self._read.pop(number, None)
        return self.entry(number)

    def _fetch(self, number: int) -> Entry | None:
        path = self.jvm.org.apache.hadoop.fs.Path(self.log.logPath(), f"{number:020}.json")
        try:
            lines = self.log.store().read(path, self.log.newDeltaHadoopConf()).mkString("\n")
        except Py4JJavaError as error:
            if "FileNotFoundException" in cause_of(error):
                return None
            raise
        return _entry(number, str(lines))


def _entry(number: int, lines: str) -> Entry:
    info: Action = {}
    files: dict[str, list[Action]] = {"add": [], "remove": []}
    # Not splitlines(): JSON strings may contain other line separators.
    for line in lines.split("\n"):
        if not line.strip():
            continue
        for kind, body in json.loads(line).items():
            if kind == "commitInfo":
                info = body
            elif kind in files:
                files[kind].append(body)
    return Entry(number, info, files["add"], files["remove"])
