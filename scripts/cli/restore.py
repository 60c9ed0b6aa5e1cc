"""``compactor restore``: source objects as they were, from the outputs that hold them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.manifest import ManifestRow
from compactor.ports import ObjectStore
from compactor.restore import Found, Wanted, find, restore
from compactor.uris import S3Uri
from scripts.cli import options
from scripts.cli.store import open_store
from scripts.commit_logs import logs_for_key, state_from
from scripts.console import print_line, progress

_COMPRESSION_SUFFIXES = (".gz", ".gzip", ".zst", ".zstd")
_STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Restored:
    """One source given back; ``path`` is where its bytes are now."""

    key: str
    etag: str
    path: str
    bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """DEST, keys, and where to."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument("keys", metavar="KEY", nargs="+", help="whole key of a source object")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write below this directory, under the same key; - is standard output (the"
        " default, for a single KEY). A compressed source comes back decompressed, and loses"
        " the .gz or .zst of its key; only sources that S3 copied whole stay compressed.",
    )
    parser.add_argument("--etag", help="the version with this ETag instead of the newest")
    parser.add_argument("--source-bucket", metavar="BUCKET", help="bucket of the source")
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Find the sources, and write each, its size and checksum checked.

    Raises:
        InvalidInput: no commit names a key, or the options contradict each other.
        IntegrityError: an output is gone or damaged; nothing is left of what it would give.
    """
    output = _check(args)
    store = open_store(args.endpoint_url)
    with progress("searching the commit logs"):
        found = _find_all(args, state_from(args), store)
    if output is None:
        _to_stdout(found[0], store)
        return 0
    done = []
    with progress("restoring", len(args.keys)) as bar:
        for one in _to_directory(found, output, store):
            done.append(one)
            bar.advance()
    if args.json:
        print(json.dumps([asdict(one) for one in done], indent=2))
    else:
        for one in done:
            print_line(f"{one.path}: {one.bytes:,} bytes")
    return 0


def _check(args: argparse.Namespace) -> Path | None:
    """The directory to write to; None for standard output."""
    if args.output not in (None, _STDOUT):
        if args.etag is not None and len(args.keys) > 1:
            raise InvalidInput("--etag", args.etag, "a single KEY with it")
        return Path(args.output)
    if len(args.keys) > 1:
        raise InvalidInput("--output", args.output, "a directory, when there are several keys")
    if args.json:
        raise InvalidInput("--json", True, "--output DIR with it: the bytes go to standard output")
    return None


def _find_all(args: argparse.Namespace, state: S3Uri, store: ObjectStore) -> list[Found]:
    """Keys of one prefix are in the same partition and so are looked for together."""
    by_prefix: dict[str, list[str]] = {}
    for key in dict.fromkeys(args.keys):
        by_prefix.setdefault(key.rpartition("/")[0], []).append(key)
    found: list[Found] = []
    for keys in by_prefix.values():
        found += _find(Wanted(frozenset(keys), args.etag, args.source_bucket), state, store)
    return found


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


def _to_stdout(found: Found, store: ObjectStore) -> None:
    for _, pieces in restore(found, store):
        for piece in pieces:
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _to_directory(
    found: Sequence[Found], directory: Path, store: ObjectStore
) -> Iterator[Restored]:
    paths = {row.source.key: _path(row, directory) for one in found for row in one.rows}
    for one in found:
        for row, pieces in restore(one, store):
            path = paths[row.source.key]
            yield Restored(row.source.key, row.source.etag, str(path), _write(path, pieces))


def _path(row: ManifestRow, directory: Path) -> Path:
    key = row.source.key
    segments = key.split("/")
    if any(segment in ("", ".", "..") for segment in segments) or "\0" in key:
        raise InvalidInput("KEY", key, "a key that is a path, or a single KEY to standard output")
    decompressed = row.plain_bytes not in (None, row.source.size)
    if decompressed and key.lower().endswith(_COMPRESSION_SUFFIXES):
        key = key.rpartition(".")[0]
    return directory / key


def _write(path: Path, pieces: Iterable[bytes]) -> int:
    """Write whole or not at all; returns the bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    size = 0
    try:
        with partial.open("wb") as stream:
            for piece in pieces:
                size += stream.write(piece)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return size
