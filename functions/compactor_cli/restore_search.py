"""Selects sources to restore from the commit logs: by key, prefix, glob and time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import cached_property
from typing import NamedTuple

from compactor.clock import instant
from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog, every_entry, logs_for_key, read_entry
from compactor.log.manifest import ManifestRow
from compactor.model import SourceObject
from compactor.outputs.restore import Found, Wanted, find, keeps_bytes
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_cli.commit_logs import all_logs, require_state
from compactor_cli.console import progress

_SCHEME = "s3://"
#: Returns the same commits on each call, each output once; re-read because of their size.
Commits = Callable[[], Iterable[Found]]


@dataclass(frozen=True)
class Wish:
    """Which sources to restore: given keys, or those that match all filters.

    Attributes:
        keys: whole keys.
        prefix: prefix of keys; empty for all.
        glob: pattern for whole keys; ``*`` also matches ``/``.
        since, until: committed at or after, and before; UNIX seconds of the store's clock.
        bucket: of the sources; None for any.
    """

    keys: Sequence[str] = ()
    prefix: str | None = None
    glob: str | None = None
    since: float = 0.0
    until: float = math.inf
    bucket: str | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return None if self.glob is None else re.compile(translate(self.glob))

    def fits(self, source: SourceObject) -> bool:
        """Return whether a source matches prefix and glob, whenever it was committed."""
        below = source.key.startswith(self.prefix or "")
        return below and (self._pattern is None or self._pattern.match(source.key) is not None)

    @property
    def filters(self) -> tuple[str, str]:
        """The first given filter option, and its value with all further ones; for messages."""
        given = {"--prefix": self.prefix, "--glob": self.glob}
        texts = [f"{name} {value}" for name, value in given.items() if value is not None]
        texts += [f"--since {instant(self.since)}"] if self.since else []
        texts += [f"--until {instant(self.until)}"] if self.until != math.inf else []
        option, _, rest = " ".join(texts).partition(" ")
        return option or "--all", rest


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Attributes:
        commits: with the wanted rows only; each output appears once.
        rows_only: keys whose outputs hold rows only.
    """

    commits: Commits
    rows_only: list[str] = field(default_factory=list)


def named(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return keys that were given as keys or as URIs of one bucket, and that bucket if known.

    Raises:
        InvalidInput: keys and URIs are mixed, or URIs have several buckets or no key.
    """
    uris = [word for word in words if word.startswith(_SCHEME)]
    if not uris:
        return [*words], None
    parts = [uri.removeprefix(_SCHEME).partition("/") for uri in uris]
    buckets = {bucket for bucket, _, _ in parts}
    if len(uris) < len(words) or len(buckets) > 1 or not all(key for _, _, key in parts):
        accepted = "whole keys, as ls shows them, or URIs s3://BUCKET/KEY of one bucket"
        raise InvalidInput("KEY", " ".join(words), accepted)
    return [key for _, _, key in parts], buckets.pop()


def search(wish: Wish, state: S3Uri, store: ObjectStore) -> Search:
    """Find the commits that name the sources.

    Raises:
        InvalidInput: no commit names a key, or none matches.
        IntegrityError: a log entry is damaged.
    """
    with progress("searching the commit logs"):
        return (_named if wish.keys else _fitting)(wish, state, store)


def _named(wish: Wish, state: S3Uri, store: ObjectStore) -> Search:
    """Search for keys; those of one prefix are in the same partition and searched together."""
    by_prefix: dict[str, list[str]] = {}
    for key in dict.fromkeys(wish.keys):
        by_prefix.setdefault(key.rpartition("/")[0], []).append(key)
    # Prefixes may share a partition and thus an output, which is read only once.
    together: dict[str, Found] = {}
    for keys in by_prefix.values():
        for found in _find(Wanted(frozenset(keys), wish.bucket), state, store):
            before = together.get(found.commit.commit_id)
            rows = found.rows if before is None else (*before.rows, *found.rows)
            together[found.commit.commit_id] = _only(found.commit, rows)
    return Search(together.values)


def _find(wanted: Wanted, state: S3Uri, store: ObjectStore) -> Iterator[Found]:
    left = wanted
    for log in logs_for_key(min(wanted.keys), state, store):
        for found in find(log.newest_first(store), left):
            yield found
            left = replace(left, keys=left.keys - {row.source.key for row in found.rows})
        if not left.keys:
            return
    require_state(state, store)
    raise _not_found(left, state)


def _not_found(left: Wanted, state: S3Uri) -> InvalidInput:
    key = min(left.keys)
    accepted = f"the key of a source that a commit in {state.uri} names"
    more = "; compactor restore --prefix takes all below one" if key.endswith("/") else ""
    return InvalidInput("KEY", key, f"{accepted}{more}; compactor ls shows them")


class _Newest(NamedTuple):
    """The newest version of a key, and its place; ordered by commit time."""

    at: float
    log: int
    sequence: int
    identity: bytes
    kept: bool


def _fitting(wish: Wish, state: S3Uri, store: ObjectStore) -> Search:
    """Search for the newest version of every key; takes about 400 bytes of memory per key."""
    logs = all_logs(state, store)
    newest: dict[tuple[str, str], _Newest] = {}
    for number, log in enumerate(logs):
        for commit, row, at in _versions(log, wish, store):
            source = row.source
            one = _Newest(at, number, commit.sequence, source.identity, keeps_bytes(commit))
            name = (source.bucket, source.key)
            newest[name] = max(newest.get(name, one), one)
    if not newest:
        accepted = (
            f"filters that match a source in {state.uri}; compactor ls shows their keys and times"
        )
        raise InvalidInput(*wish.filters, accepted)
    chosen: dict[tuple[int, int], set[bytes]] = {}
    for one in newest.values():
        if one.kept:
            chosen.setdefault((one.log, one.sequence), set()).add(one.identity)

    def commits() -> Iterator[Found]:
        for (number, sequence), identities in sorted(chosen.items()):
            log = logs[number]
            commit = read_entry(store, log.state.bucket, log.key_of(sequence), sequence)
            yield _only(commit, (row for row in commit.rows if row.source.identity in identities))

    return Search(commits, [key for (_, key), one in newest.items() if not one.kept])


def _versions(
    log: StoredLog, wish: Wish, store: ObjectStore
) -> Iterator[tuple[Commit, ManifestRow, float]]:
    """Yield every wanted version in one log and when it was committed, newest first."""
    within = {n for n, written in log.entries.items() if wish.since <= written < wish.until}
    oldest = min(within, default=math.inf)
    # Later entries decide whether an entry is valid, so all of them are read.
    entries = every_entry(store, log.state.bucket, log.keys) if within else ()
    for commit, valid in entries:
        for row in commit.rows if valid and commit.sequence in within else ():
            if wish.fits(row.source):
                yield commit, row, commit.created_at
        if commit.sequence <= oldest:
            return


def _only(commit: Commit, rows: Iterable[ManifestRow]) -> Found:
    """Return a commit with these rows only, sorted by offset."""
    wanted = tuple(sorted(rows, key=lambda row: row.offset))
    return Found(replace(commit, rows=wanted), wanted)
