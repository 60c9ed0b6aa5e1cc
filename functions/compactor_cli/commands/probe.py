"""``compactor probe``: shows which conditions a store honours, and what that means for runs."""

from __future__ import annotations

import argparse
import json

import msgspec

from compactor.errors import InvalidInput
from compactor.ports import Deletes
from compactor.probe.probe import is_aws, probe
from compactor.settings.settings import STATE_ROOT
from compactor.settings.uris import S3Uri
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from
from compactor_cli.console import print_line, progress

_DELETES = {
    Deletes.BATCH: "by DeleteObjects, with the ETag of each key",
    Deletes.SINGLE: "one by one, by DeleteObject with If-Match: ETags in DeleteObjects are ignored",
    Deletes.NONE: "none: neither ETags in DeleteObjects nor If-Match on DeleteObject are honoured",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST and the endpoint."""
    options.add_places(parser, options.DESTINATION)
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Probe every condition; ignores recorded results, and probes AWS too.

    Raises:
        InvalidInput: the bucket does not exist, or cannot be written.
        Failure: the store is unsafe for runs.
    """
    state = _state(args)
    store = open_store(args.endpoint_url, state.bucket)
    url, refusal, traits = store.endpoint_url, "", None
    try:
        with progress("probing the store"):
            traits = probe(state, store)
    except InvalidInput as error:
        if error.field != "endpoint":
            raise
        refusal = str(error)
    if args.json:
        found = {"endpoint": url, "state": state.uri, "aws": is_aws(url), "safe": not refusal}
        print(json.dumps(found | {"refusal": refusal, "traits": msgspec.to_builtins(traits)}))
    elif traits is not None:
        print_line(f"{url}, probed below {state.uri}probes/: runs are safe", "bold")
        print_line("uploads: " + ("" if traits.checks_crc32 else "not ") + "checked by their CRC32")
        if not traits.checks_crc32:
            print_line("each output is read back once it is published, and compared")
        print_line(f"deletes of sources: {_DELETES[traits.deletes]}")
    if refusal:
        raise Failure(refusal)
    return 0


def _state(args: argparse.Namespace) -> S3Uri:
    """Return the state of DEST; for a whole bucket, the root of the states of its prefixes."""
    destination = S3Uri.parse(options.DESTINATION, args.s3_destination_uri)
    if destination.prefix or args.s3_state_uri:
        return state_from(args)
    return S3Uri(destination.bucket, STATE_ROOT)
