"""``compactor cat``: the content of source objects on standard output, from their outputs."""

from __future__ import annotations

import argparse

from compactor_cli.chosen import Wish, named, search
from compactor_cli.commands import options
from compactor_cli.commands.restore import to_stdout
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """DEST and keys."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "keys", metavar="KEY", nargs="+", help="whole key of a source object, or its URI"
    )
    parser.add_argument("--source-bucket", metavar="BUCKET", help="the bucket of KEY")
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Write what each source held, decompressed, one behind the other.

    Raises:
        InvalidInput: no commit names a key; nothing was written then.
        IntegrityError: an output is gone or damaged.
    """
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    words = [named([word], args.source_bucket) for word in args.keys]
    wishes = (Wish(keys, source_bucket=bucket) for keys, bucket in words)
    for found in [search(wish, state, store) for wish in wishes]:
        to_stdout(found, store)
    return 0
