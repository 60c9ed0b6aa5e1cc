"""``compactor doctor``: checks what a run depends on: store, credentials, account limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from compactor.errors import CompactorError, InvalidInput
from compactor.ports import Deletes, StoreTraits
from compactor.probe.probe import is_aws, probe
from compactor.settings.settings import STATE_ROOT
from compactor.settings.uris import S3Uri
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, action
from compactor_cli.commit_logs import state_from
from compactor_cli.console import print_line, progress
from compactor_cli.failures import Failure
from compactor_cli.store import open_store

_DELETES = {
    Deletes.BATCH: "by DeleteObjects, with the ETag of each key",
    Deletes.SINGLE: "one by one, by DeleteObject with If-Match: ETags in DeleteObjects are ignored",
    Deletes.NONE: "none: neither ETags in DeleteObjects nor If-Match on DeleteObject are honoured",
}
# A deployment starts up to 40 workers at once; an account that was just opened may have 10.
_FEW_FUNCTIONS = 100


@action(
    given.places("s3_destination_uri", required=True), given.COMMON, given.fields("s3_state_uri")
)
def run(args: Args) -> int:
    """Probe every condition of the store; ignores recorded results, and probes AWS too.

    Raises:
        InvalidInput: there are no credentials, or the bucket does not exist or cannot be written.
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
    account = _account() if is_aws(url) else {}
    if args.json:
        document = {"endpoint": url, "state": state.uri, "aws": is_aws(url), "safe": not refusal}
        document |= {"refusal": refusal, "traits": msgspec.to_builtins(traits), "account": account}
        print(json.dumps(document, indent=2))
    elif traits is not None:
        print_line(f"{url}, probed below {state.uri}probes/: runs are safe", "bold")
        for line in (*_traits(traits), *(f"{name}: {text}" for name, text in account.items())):
            print_line(line)
    if refusal:
        raise Failure(refusal)
    return 0


def _state(args: Args) -> S3Uri:
    """Return the state of DEST; for a whole bucket, the root of the states of its prefixes."""
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    if destination.prefix or args.s3_state_uri:
        return state_from(args)
    return S3Uri(destination.bucket, STATE_ROOT)


def _traits(traits: StoreTraits) -> Iterator[str]:
    yield f"uploads: {'' if traits.checks_crc32 else 'not '}checked by their CRC32"
    if not traits.checks_crc32:
        yield "each output is read back once it is published, and compared"
    yield f"deletes of sources: {_DELETES[traits.deletes]}"


def _account() -> dict[str, Any]:
    """Return who the caller is, and how many functions the account may run at once."""
    session = boto3.session.Session()
    found: dict[str, Any] = {}
    try:
        found["credentials"] = session.client("sts").get_caller_identity()["Arn"]
        limit = session.client("lambda").get_account_settings()["AccountLimit"]
        functions = limit["ConcurrentExecutions"]
        advice = "; ask for a higher quota, or set max_concurrency" * (functions < _FEW_FUNCTIONS)
        found["concurrent functions"] = f"{functions:,} in {session.region_name}{advice}"
    except (BotoCoreError, ClientError, CompactorError) as error:
        found["account limits"] = f"not known: {error}"
    return found
