"""A store in memory whose one bucket is a directory, too: what an engine writes there, it has."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.examples import NOW
from tests.support.memory_store import Call, ManualClock, MemoryStore

# Of Hadoop's file system: sums of what it wrote.
_SUMS = ".crc"


class DirectoryStore(MemoryStore):
    """Strict as the store in memory; before each request it looks at the directory.

    Args:
        bucket: its name.
        directory: where its objects lie by their keys.
    """

    def __init__(self, bucket: str, directory: Path) -> None:
        super().__init__(ManualClock(NOW))
        self.add_bucket(bucket)
        self._name = bucket
        self.directory = directory
        directory.mkdir(parents=True)
        self._there: set[str] = set()
        self._looking = threading.RLock()
        # Both come first, so that what others hook in may end a request at any moment.
        self.hooks.before.append(self._look)
        self.hooks.after.append(self._write)

    def quiet(self) -> None:
        """Take out what others have hooked in."""
        self.hooks.clear()
        self.hooks.before.append(self._look)
        self.hooks.after.append(self._write)

    def _look(self, _: Call) -> None:
        """What others have written and deleted meanwhile."""
        # Readers of a table ask from several threads.
        with self._looking:
            there = {
                str(path.relative_to(self.directory)): path
                for path in self.directory.rglob("*")
                if path.is_file() and path.suffix != _SUMS
            }
            # What an engine writes, it never writes over.
            for key in there.keys() - self._there:
                self.seed(self._name, key, there[key].read_bytes())
            for key in self._there - there.keys():
                self.remove(self._name, key)
            self._there = set(there)

    def _write(self, call: Call) -> None:
        with self._looking:
            body = self.contents(self._name, call.key).get(call.key)
            path = self.directory / call.key
            if body is not None and call.name in {"put", "create", "complete_upload"}:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
                self._there.add(call.key)
            elif body is None and call.name.startswith("delete"):
                path.unlink(missing_ok=True)
                self._there.discard(call.key)
