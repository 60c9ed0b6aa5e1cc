"""``compactor restore``: rebuilds source objects from the outputs that contain them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict

from compactor.errors import InvalidInput
from compactor.outputs.restore import restore
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sizes import human_bytes, plural
from compactor_cli import moments
from compactor_cli.chosen import Search, Wish, named, search
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from
from compactor_cli.console import print_line
from compactor_cli.restored_files import Places
from compactor_cli.restored_objects import S3_SCHEME, place_at
from compactor_cli.restoring import Restored, restore_all

_STDOUT = "-"
# Options that select sources without naming keys.
_FILTERS = ("prefix", "glob", "since", "until", "run_id")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST, the sources, and where to write them."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "keys", metavar="KEY", nargs="*", help="whole key of a source object, or its URI"
    )
    parser.add_argument("--etag", help="restore the version with this ETag instead of the newest")
    _add_filters(parser.add_argument_group("instead of keys (newest version of each)"))
    _add_output(parser.add_argument_group("output"))
    options.add_common(parser)
    options.add_state(parser)


def _add_filters(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--all", action="store_true", help="every source")
    group.add_argument("--prefix", help="sources whose key begins with this")
    group.add_argument("--glob", help="sources whose whole key matches; * also matches /")
    group.add_argument("--since", metavar="TIME", help=moments.SINCE_HELP)
    group.add_argument("--until", metavar="TIME", help=moments.UNTIL_HELP)
    group.add_argument("--run-id", metavar="ID", help="sources that this run committed")
    group.add_argument(
        "--source-bucket", metavar="BUCKET", help="sources of this bucket; applies to KEY as well"
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-o",
        "--output",
        metavar="DIR|URI",
        help="write below this directory or S3 URI, under the same key; - is standard output (the"
        " default for a single KEY). A source that ends in .gz or .zst is restored decompressed,"
        " with .content appended to its name; sources that S3 copied whole, or that are members or"
        " frames of an output, stay compressed.",
    )
    group.add_argument(
        "--compress",
        action="store_true",
        help="compress sources that end in .gz or .zst again: same content and name, but different"
        " compressed bytes",
    )
    group.add_argument("--overwrite", action="store_true", help="replace existing files or objects")
    group.add_argument(
        "--escape-names",
        action="store_true",
        help="escape names that are not valid file names (%% and hexadecimal digits)",
    )


def run(args: argparse.Namespace) -> int:
    """Find the sources and write each, after checking its size and checksum.

    Raises:
        InvalidInput: no commit names a key, options contradict each other, or something would be
            overwritten; nothing was written.
        IntegrityError: an output is missing or damaged; nothing was written from it.
        Failure: some matching sources are in outputs that hold only rows.
    """
    wish = _wish(args)
    _check_output(args)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    places = _places(args, state, store)
    found = search(wish, state, store)
    if places is None:
        to_stdout(found, store)
        return 0
    _show(restore_all(found, places, store), as_json=args.json)
    if found.rows_only:
        such = f"such as {found.rows_only[0]}: their outputs hold rows, not bytes"
        raise Failure(f"{plural(len(found.rows_only), 'source')} cannot be restored, {such}")
    return 0


def _show(done: Iterable[Restored], *, as_json: bool) -> None:
    """Print what was restored, after everything is."""
    finished = list(done)
    if as_json:
        print(json.dumps([asdict(one) for one in finished], indent=2))
        return
    for one in finished:
        print_line(f"{one.path}: {one.bytes:,} bytes")
    if len(finished) > 1:
        size = human_bytes(sum(one.bytes for one in finished))
        print_line(f"{plural(len(finished), 'source')} restored, {size}")


def _wish(args: argparse.Namespace) -> Wish:
    given = [f"--{name.replace('_', '-')}" for name in _FILTERS if getattr(args, name)]
    given += ["--all"] * args.all
    if bool(args.keys) == bool(given) or (args.all and len(given) > 1):
        accepted = "keys, as ls shows them, or --all, or any of --prefix, --glob, --since, --until"
        raise InvalidInput("KEY", args.keys or given or None, f"{accepted} and --run-id")
    if args.etag is not None and len(args.keys) != 1:
        message = "--etag needs a single KEY"
        raise InvalidInput("--etag", args.etag, "a single KEY with it", message=message)
    now = time.time()
    keys, bucket = named(args.keys, args.source_bucket)
    return Wish(
        keys,
        args.prefix,
        args.glob,
        moments.since(args.since, now),
        moments.until(args.until, now),
        args.run_id,
        args.etag,
        bucket,
    )


def _check_output(args: argparse.Namespace) -> None:
    if args.output not in (None, _STDOUT):
        if args.escape_names and args.output.startswith(S3_SCHEME):
            message = "--escape-names is for directories: objects keep their keys"
            raise InvalidInput("--escape-names", True, "a directory as --output", message=message)
        return
    if len(args.keys) != 1:
        accepted = "a directory or an S3 URI, unless there is a single KEY"
        raise InvalidInput("--output", args.output, accepted)
    for name in ("json", "compress", "overwrite", "escape_names"):
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            message = f"{option} needs --output DIR: without it, the bytes go to standard output"
            raise InvalidInput(option, True, "--output DIR with it", message=message)


def _places(args: argparse.Namespace, state: S3Uri, store: ObjectStore) -> Places | None:
    """Return where to write; None for standard output."""
    if args.output in (None, _STDOUT):
        return None
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    return place_at(
        args.output,
        (destination, state),
        store,
        compress=args.compress,
        overwrite=args.overwrite,
        escape=args.escape_names,
    )


def to_stdout(found: Search, store: ObjectStore) -> None:
    """Write the content of sources to standard output, output by output."""
    for one in found.commits():
        for _, pieces in restore(one, store):
            for piece in pieces:
                sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
