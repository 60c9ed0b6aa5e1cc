"""What an engine asked of S3: by the log of the server before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

# The server writes a line when an answer has gone, which is a little after the engine has it.
_LATE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Requests:
    """Of one query.

    Attributes:
        gets, heads, lists: how many.
        bytes: of all answers.
        refused: answers that are neither 200 nor 206.
        most_gets: so many GETs of objects were under way at once.
    """

    gets: int = 0
    heads: int = 0
    lists: int = 0
    bytes: int = 0
    refused: int = 0
    most_gets: int = 0


class AccessLog:
    """The log of a running server, as far as it is of what happens from now on.

    Args:
        path: the log, in the form of :data:`compactor_dev.benchmark.front.LOG_FORMAT`.
        late_seconds: how long the last lines may take.
    """

    def __init__(self, path: Path, late_seconds: float = _LATE_SECONDS) -> None:
        self._path = path
        self._late_seconds = late_seconds
        self._read = 0
        self.skip()

    def skip(self) -> None:
        """Forget what was asked until now."""
        time.sleep(self._late_seconds)
        self._read = self._path.stat().st_size

    def take(self) -> Requests:
        """What was asked since the last call."""
        time.sleep(self._late_seconds)
        with self._path.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        self._read += len(text)
        return requests_of(text.decode("utf-8", "replace").splitlines())


def requests_of(lines: list[str]) -> Requests:
    """Count the requests that lines of a log tell of."""
    counts = {"GET": 0, "HEAD": 0, "LIST": 0}
    size = refused = 0
    moments: list[tuple[float, int]] = []
    for line in lines:
        ended, took, method, path, query, status, sent = line.split("\t")[:7]
        kind = "LIST" if method == "GET" and _is_list(path, query) else method
        counts[kind] = counts.get(kind, 0) + 1
        size += int(sent)
        refused += status not in {"200", "206"}
        if kind == "GET":
            moments += [(float(ended) - float(took), 1), (float(ended), -1)]
    return Requests(counts["GET"], counts["HEAD"], counts["LIST"], size, refused, _most(moments))


def _is_list(path: str, query: str) -> bool:
    key = path.lstrip("/").partition("/")[2]
    return not key or "list-type=" in query


def _most(moments: list[tuple[float, int]]) -> int:
    # What ends as another begins is over.
    under_way = most = 0
    for _, step in sorted(moments):
        under_way += step
        most = max(most, under_way)
    return most
