"""The mapping of a destination: the place of every source in the outputs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator

from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog, each_log
from compactor.model import SourceObject
from compactor.outputs.mapping import Mapped, mapped
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_cli.commit_logs import no_state


def mapping(state: S3Uri, store: ObjectStore) -> Iterator[Mapped]:
    """Yield every source in a valid commit, with one commit in memory at a time.

    Raises:
        InvalidInput: there is no state.
        IntegrityError: a log entry is damaged.
    """
    found = False
    for log in each_log(state, store):
        found = found or bool(log.entries)
        yield from _of_log(log, store)
    if not found:
        raise no_state(state)


def _of_log(log: StoredLog, store: ObjectStore) -> Iterator[Mapped]:
    # Sources delivered again, until the earlier commit with their content is reached.
    again: dict[tuple[int, str, str], list[tuple[SourceObject, Commit]]] = {}
    for commit in log.newest_first(store):
        for one in commit.again:
            place = (one.of, one.source.bucket, one.source.key)
            again.setdefault(place, []).append((one.source, _without_rows(commit)))
        for row in commit.rows:
            yield mapped(log.path, commit, row)
            place = (commit.sequence, row.source.bucket, row.source.key)
            for later in again.pop(place, ()):
                yield mapped(log.path, commit, row, later)


def _without_rows(commit: Commit) -> Commit:
    """Return a commit without its rows, which may be many and are not needed."""
    return Commit(
        commit.sequence,
        commit.commit_id,
        commit.run_id,
        commit.created_at,
        commit.source_bucket,
        commit.group_id,
    )


def as_json_lines(rows: Iterable[Mapped]) -> Iterator[bytes]:
    """Yield one JSON object per line; bytes as base64, times in ISO 8601."""
    for row in rows:
        document = row._asdict()
        document["committed_at"] = row.committed_at.isoformat().replace("+00:00", "Z")
        for name in ("dropped_prefix", "dropped_suffix"):
            document[name] = base64.b64encode(document[name]).decode()
        yield json.dumps(document).encode() + b"\n"
