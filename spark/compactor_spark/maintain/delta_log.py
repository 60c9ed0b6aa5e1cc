"""What the log of a Delta table says of its commits, read as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations

from compactor_spark.upsert.engines import cause_of

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit.

    Attributes:
        number: its version.
        info: what its writer said of it.
        adds, removes: data files that came, and that went.
    """

    number: int
    info: Action
    adds: Sequence[Action]
    removes: Sequence[Action]

    @property
    def at(self) -> float | None:
        """When it was made, UNIX seconds; None where its writer did not say."""
        given = self.info.get("inCommitTimestamp", self.info.get("timestamp"))
        return None if given is None else float(given) / 1000

    @property
    def says(self) -> str:
        """What its writer wrote there for itself."""
        return str(self.info.get("userMetadata") or "")

    def metric(self, name: str) -> int | None:
        """What its writer counted; None where it did not."""
        given = (self.info.get("operationMetrics") or {}).get(name)
        return None if given is None else int(given)

    @property
    def gone(self) -> Sequence[Action]:
        """Files that went; one that only has another deletion vector did not."""
        here = {one["path"] for one in self.adds}
        return [one for one in self.removes if one["path"] not in here]

    def touches(self, values: Mapping[str, str | None]) -> bool:
        """Whether it changed rows of the partition with these values.

        Args:
            values: by the names of columns in data files; none for a whole table.
        """
        for one in (*self.adds, *self.removes):
            if not one.get("dataChange", True):
                continue
            found = one.get("partitionValues")
            # Old writers do not say of which partition a removed file was.
            if found is None or all(found.get(name) == value for name, value in values.items()):
                return True
        return False


@dataclass(slots=True)
class DeltaEntries:
    """The commits of one table; each is read once, unless :meth:`again` is asked for it.

    Args:
        log: the ``DeltaLog``.
        jvm: of the session.
    """

    log: Any
    jvm: Any
    _read: dict[int, Entry | None] = field(default_factory=dict, init=False)

    def back_from(self, number: int) -> Iterator[Entry | None]:
        """From this one back to the first; ends with None where one is not there any more."""
        while number >= 0:
            entry = self.entry(number)
            yield entry
            if entry is None:
                return
            number -= 1

    def entry(self, number: int) -> Entry | None:
        """A commit; None where the log has it no more."""
        if number not in self._read:
            self._read[number] = self._fetch(number)
        return self._read[number]

    def again(self, number: int) -> Entry | None:
        """As it stands now: a driver whose commits are plain PUTs can write over one."""
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
    # Other characters that end lines are part of what JSON holds.
    for line in lines.split("\n"):
        if not line.strip():
            continue
        for kind, body in json.loads(line).items():
            if kind == "commitInfo":
                info = body
            elif kind in files:
                files[kind].append(body)
    return Entry(number, info, files["add"], files["remove"])


def uri_of(table: str, path: str) -> str:
    """Where a file of the log lies; the log has its path as a URI has it, escaped."""
    return unquote(path) if "://" in path else f"{table.rstrip('/')}/{unquote(path)}"
