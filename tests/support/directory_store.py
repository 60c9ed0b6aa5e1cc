"""An in-memory store whose only bucket mirrors a directory, in which an engine reads and writes."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from tests.support.examples import NOW
from tests.support.memory_store import Call, ManualClock, MemoryStore

# Checksum files of Hadoop's file system, and what delta-rs writes before it renames it.
_NO_OBJECT = re.compile(r"\.crc$|#\d+$")


class DirectoryStore(MemoryStore):
    """As strict as the in-memory store; checks the directory before each request.

    Args:
        bucket: the bucket's name.
        directory: where its objects are stored as files, by key.
    """

    def __init__(self, bucket: str, directory: Path) -> None:
        super().__init__(ManualClock(NOW))
        self.add_bucket(bucket)
        self._name = bucket
        self.directory = directory
        directory.mkdir(parents=True)
        self._there: set[str] = set()
        self._looking = threading.RLock()
        # Both come first, so that hooks of tests may abort a request at any moment.
        self.hooks.before.append(self._look)
        self.hooks.after.append(self._write)

    def quiet(self) -> None:
        """Remove the hooks of tests."""
        self.hooks.clear()
        self.hooks.before.append(self._look)
        self.hooks.after.append(self._write)

    def _look(self, _: Call) -> None:
        """Take over files that others have written or deleted in the meantime."""
        # Readers of a table send requests from several threads.
        with self._looking:
            there = {
                str(path.relative_to(self.directory)): path
                for path in self.directory.rglob("*")
                if path.is_file() and not _NO_OBJECT.search(path.name)
            }
            # An engine never overwrites its files.
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
