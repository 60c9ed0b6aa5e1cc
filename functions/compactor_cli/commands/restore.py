"""``compactor restore``: rebuilds source objects from the outputs that contain them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from compactor.errors import InvalidInput
from compactor.outputs.restore import restore
from compactor.settings.uris import S3Uri
from compactor.sizes import human_bytes, plural
from compactor_cli import moments
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Argument, Option, action
from compactor_cli.commit_logs import state_from
from compactor_cli.console import print_line
from compactor_cli.failures import Failure
from compactor_cli.restore_search import Wish, named, search
from compactor_cli.restore_targets import Restored, restore_all, targets_at
from compactor_cli.store import open_store

_STDOUT = "-"
# Options that select sources without naming keys.
_FILTERS = ("prefix", "glob", "since", "until")


@action(
    given.places("s3_destination_uri", required=True),
    Argument("keys", "[KEY]...", "whole key of a source object, or its URI", nargs=-1),
    Option("--all", is_flag=True, section="instead of keys", help="every source"),
    Option("--prefix", section="instead of keys", help="sources whose key begins with this"),
    Option(
        "--glob",
        section="instead of keys",
        help="sources whose whole key matches; * also matches /",
    ),
    Option("--since", metavar="TIME", section="instead of keys", help=moments.SINCE_HELP),
    Option("--until", metavar="TIME", section="instead of keys", help=moments.UNTIL_HELP),
    Option(
        "-o",
        "--output",
        metavar="DIR|URI",
        section="output",
        help="write below this directory or S3 URI, under the same key; what was gzip or zstd is"
        " compressed again: same content, other compressed bytes. - is standard output, which gets"
        " the content (the default for a single KEY)",
    ),
    Option("--overwrite", is_flag=True, section="output", help="replace existing files or objects"),
    given.COMMON,
    given.fields("s3_state_uri"),
)
def run(args: Args) -> int:
    """Find the sources and write each, after checking its size and checksum.

    Raises:
        InvalidInput: no commit names a key, options contradict each other, or something would be
            overwritten; nothing was written.
        IntegrityError: an output is missing or damaged; nothing was written from it.
        Failure: some matching sources are in outputs that hold only rows.
    """
    wish = _wish(args)
    is_stdout = args.output in (None, _STDOUT)
    if is_stdout:
        _check_stdout(args)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    if is_stdout:
        for commit in search(wish, state, store).commits():
            for _, pieces in restore(commit, store):
                sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return 0
    targets = targets_at(args.output, (destination, state), store, overwrite=args.overwrite)
    found = search(wish, state, store)
    _show(list(restore_all(found, targets, store)), as_json=args.json)
    if found.rows_only:
        such = f"such as {found.rows_only[0]}: their outputs hold rows, not bytes"
        raise Failure(f"{plural(len(found.rows_only), 'source')} cannot be restored, {such}")
    return 0


def _show(restored: Sequence[Restored], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(source) for source in restored], indent=2))
        return
    for source in restored:
        print_line(f"{source.path}: {source.bytes:,} bytes")
    if len(restored) > 1:
        size = human_bytes(sum(source.bytes for source in restored))
        print_line(f"{plural(len(restored), 'source')} restored, {size}")


def _wish(args: Args) -> Wish:
    options = [f"--{name}" for name in _FILTERS if getattr(args, name)]
    options += ["--all"] * args.all
    if bool(args.keys) == bool(options) or (args.all and len(options) > 1):
        accepted = "keys, as ls shows them, or --all, or any of --prefix, --glob, --since, --until"
        raise InvalidInput("KEY", [*args.keys] or options or None, accepted)
    now = time.time()
    keys, bucket = named(args.keys)
    since, until = moments.since(args.since, now), moments.until(args.until, now)
    return Wish(keys, args.prefix, args.glob, since, until, bucket)


def _check_stdout(args: Args) -> None:
    if len(args.keys) != 1:
        accepted = "a directory or an S3 URI, unless there is a single KEY"
        raise InvalidInput("--output", args.output, accepted)
    for option in ("json", "overwrite"):
        if getattr(args, option):
            message = f"--{option} needs --output DIR: without it, the bytes go to standard output"
            raise InvalidInput(f"--{option}", True, "--output DIR with it", message=message)
