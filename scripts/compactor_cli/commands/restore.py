"""``compactor restore``: source objects as they were, from the outputs that hold them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.model import SourceObject
from compactor.outputs.restore import Found, Wanted, find, keeps_bytes, require_bytes, restore
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import all_logs, logs_for_key, state_from
from compactor_cli.console import counted, print_line, progress
from compactor_cli.restored_files import Form, Targets

_STDOUT = "-"
# The same commits, read anew each time: all of them would not fit in memory.
_Commits = Callable[[], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Restored:
    """One source given back; ``path`` is where its bytes are now, ``form`` what they are."""

    key: str
    etag: str
    path: str
    bytes: int
    form: Form


@dataclass(frozen=True, slots=True)
class Wish:
    """Which sources: these keys, or all whose key begins with the prefix.

    Attributes:
        etag: the version with this ETag instead of the newest.
        source_bucket: without it, any.
    """

    keys: Sequence[str] = ()
    prefix: str | None = None
    etag: str | None = None
    source_bucket: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """What was found: commits, read anew each time, and keys whose outputs hold only rows."""

    commits: _Commits
    rows_only: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """DEST, keys, and where to."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "keys", metavar="KEY", nargs="*", help="whole key of a source object, as ls shows it"
    )
    parser.add_argument("--prefix", help="every source whose key begins so, in its newest version")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write below this directory, under the same key; - is standard output (the"
        " default, for a single KEY). A source that ends in .gz or .zst comes back decompressed,"
        " and its name gets .content behind it; only sources that S3 copied whole stay compressed.",
    )
    parser.add_argument(
        "--compress",
        action="store_true",
        help="compress sources that end in .gz or .zst again: the same content under the same"
        " name, but not the same compressed bytes",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files that are there already"
    )
    parser.add_argument("--etag", help="the version with this ETag instead of the newest")
    parser.add_argument("--source-bucket", metavar="BUCKET", help="bucket of the source")
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Find the sources, and write each, its size and checksum checked.

    Raises:
        InvalidInput: no commit names a key, the options contradict each other, or something
            would be written over; nothing was written then.
        IntegrityError: an output is gone or damaged; nothing is left of what it would give.
        Failure: some sources below the prefix are in outputs that only hold their rows.
    """
    targets = _check(args)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    wish = Wish(args.keys, args.prefix, args.etag, args.source_bucket)
    found = search(wish, state, store)
    if targets is None:
        _to_stdout(found.commits, store)
        return 0
    _show(restore_files(found, targets, store), as_json=args.json)
    if found.rows_only:
        such = f"such as {found.rows_only[0]}: their outputs hold rows, not their bytes"
        raise Failure(f"{counted(len(found.rows_only), 'source')} cannot be restored, {such}")
    return 0


def search(wish: Wish, state: S3Uri, store: ObjectStore) -> Search:
    """Find the commits that name the sources.

    Raises:
        InvalidInput: no commit names a key.
    """
    with progress("searching the commit logs"):
        commits, rows_only = (_below if wish.prefix else _named)(wish, state, store)
    return Search(commits, rows_only)


def restore_files(found: Search, targets: Targets, store: ObjectStore) -> list[Restored]:
    """Write each source, its size and checksum checked.

    Raises:
        InvalidInput: something would be written over; nothing was written then.
        IntegrityError: an output is gone or damaged; nothing is left of what it would give.
    """
    with progress("searching the commit logs"):
        _place(found.commits, targets)
    done = []
    with progress("restoring") as bar:
        for one in _to_directory(found.commits, targets, store):
            done.append(one)
            bar.advance()
    return done


def _show(done: list[Restored], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(one) for one in done], indent=2))
        return
    for one in done:
        print_line(f"{one.path}: {one.bytes:,} bytes")


def _check(args: argparse.Namespace) -> Targets | None:
    """Where to write; None for standard output."""
    if bool(args.keys) == bool(args.prefix):
        raise InvalidInput("KEY", args.keys or None, "either keys or --prefix, as ls shows them")
    if args.prefix and args.etag is not None:
        raise InvalidInput("--etag", args.etag, "a single KEY with it")
    if args.output not in (None, _STDOUT):
        if args.etag is not None and len(args.keys) > 1:
            raise InvalidInput("--etag", args.etag, "a single KEY with it")
        directory = Path(args.output)
        return Targets(directory, compress=args.compress, overwrite=args.overwrite)
    if len(args.keys) != 1:
        raise InvalidInput("--output", args.output, "a directory, when there are several keys")
    for name in ("json", "compress", "overwrite"):
        if getattr(args, name):
            accepted = "--output DIR with it: the bytes go to standard output"
            raise InvalidInput(f"--{name}", True, accepted)
    return None


def _named(wish: Wish, state: S3Uri, store: ObjectStore) -> tuple[_Commits, list[str]]:
    """Keys of one prefix are in the same partition and so are looked for together."""
    by_prefix: dict[str, list[str]] = {}
    for key in dict.fromkeys(wish.keys):
        by_prefix.setdefault(key.rpartition("/")[0], []).append(key)
    found: list[Found] = []
    for keys in by_prefix.values():
        found += _find(Wanted(frozenset(keys), wish.etag, wish.source_bucket), state, store)
    return lambda: found, []


def _find(wanted: Wanted, state: S3Uri, store: ObjectStore) -> Iterator[Found]:
    left = wanted
    for log in logs_for_key(min(wanted.keys), state, store):
        for found in find(log.newest_first(store), left):
            yield found
            left = replace(left, keys=left.keys - {row.source.key for row in found.rows})
        if not left.keys:
            return
    accepted = f"the key of a source that a commit in {state.uri} names"
    raise InvalidInput("KEY", min(left.keys), accepted)


def _below(wish: Wish, state: S3Uri, store: ObjectStore) -> tuple[_Commits, list[str]]:
    """The newest version of every key; about 300 bytes are held of each, whatever the commits."""

    def every() -> Iterator[Found]:
        for commit in (commit for log in logs for commit in log.newest_first(store)):
            yield _chosen_of(commit, lambda source: _is_below(source, wish))

    logs = all_logs(state, store)
    newest = _newest(every())
    if not newest:
        accepted = f"the beginning of a key that a commit in {state.uri} names"
        raise InvalidInput("--prefix", wish.prefix, accepted)
    chosen = {identity for _, identity, kept in newest.values() if kept}

    def commits() -> Iterator[Found]:
        left = set(chosen)
        for found in every():
            one = _chosen_of(found.commit, lambda source: source.identity in left)
            if one.rows and keeps_bytes(one.commit):
                left.difference_update(row.source.identity for row in one.rows)
                yield one

    return commits, [key for (_, key), (_, _, kept) in newest.items() if not kept]


def _newest(every: Iterable[Found]) -> dict[tuple[str, str], tuple[float, bytes, bool]]:
    """When each source was committed last, as what, and whether its output keeps its bytes."""
    newest: dict[tuple[str, str], tuple[float, bytes, bool]] = {}
    for found in every:
        kept = keeps_bytes(found.commit)
        for source in (row.source for row in found.rows):
            one = (found.commit.created_at, source.identity, kept)
            name = (source.bucket, source.key)
            newest[name] = max(newest.get(name, one), one)
    return newest


def _chosen_of(commit: Commit, wanted: Callable[[SourceObject], bool]) -> Found:
    return Found(commit, tuple(row for row in commit.rows if wanted(row.source)))


def _is_below(source: SourceObject, wish: Wish) -> bool:
    same_bucket = wish.source_bucket in (None, source.bucket)
    return same_bucket and source.key.startswith(wish.prefix or "")


def _place(commits: _Commits, targets: Targets) -> None:
    for found in commits():
        require_bytes(found)
        for row in found.rows:
            targets.add(row)
    targets.check()


def _to_stdout(commits: _Commits, store: ObjectStore) -> None:
    for found in commits():
        for _, pieces in restore(found, store):
            for piece in pieces:
                sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _to_directory(commits: _Commits, targets: Targets, store: ObjectStore) -> Iterator[Restored]:
    for found in commits():
        for row, pieces in restore(found, store, as_stored=True):
            target, size = targets.write(row, pieces)
            source = row.source
            yield Restored(source.key, source.etag, str(target.path), size, target.form)
