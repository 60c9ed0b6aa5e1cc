"""``compactor probe``: shows which conditions a store honours, and what that means for runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from compactor.clock import SystemClock
from compactor.conditions import Finding, consequence, ends_runs, is_aws
from compactor.probe.probe import ask_and_record
from compactor.settings.settings import STATE_ROOT
from compactor.settings.uris import S3Uri
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from
from compactor_cli.console import print_line, print_table, progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST and the endpoint."""
    options.add_places(parser, options.DESTINATION)
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Probe every condition, deletes included; ignores recorded results, and probes AWS too.

    Raises:
        InvalidInput: the bucket does not exist, or cannot be written.
        Failure: the store is unsafe for runs.
    """
    state = _state(args)
    store = open_store(args.endpoint_url, state.bucket)
    with progress("probing the store"):
        findings = ask_and_record(state, store, SystemClock().now(), deletes=True)
    if args.json:
        print(json.dumps(_document(state, store.endpoint_url, findings), indent=2))
    else:
        _show(state, store.endpoint_url, findings)
    if ended := [finding for finding in findings if ends_runs(finding)]:
        raise Failure("; ".join(f"{one.condition}: {consequence(one)}" for one in ended))
    return 0


def _state(args: argparse.Namespace) -> S3Uri:
    """Return the state of DEST; for a whole bucket, the root of the states of its prefixes."""
    destination = S3Uri.parse(options.DESTINATION, args.s3_destination_uri)
    if destination.prefix or args.s3_state_uri:
        return state_from(args)
    return S3Uri(destination.bucket, STATE_ROOT)


def _document(state: S3Uri, endpoint_url: str, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "endpoint": endpoint_url,
        "state": state.uri,
        "aws": is_aws(endpoint_url),
        "safe": not any(map(ends_runs, findings)),
        "conditions": [
            {
                "condition": finding.condition,
                "verdict": finding.verdict,
                "detail": finding.detail,
                "consequence": consequence(finding),
            }
            for finding in findings
        ],
    }


def _show(state: S3Uri, endpoint_url: str, findings: Sequence[Finding]) -> None:
    rows = [(str(one.condition), str(one.verdict), consequence(one) or "-") for one in findings]
    heads = ("Condition", "Verdict", "Consequence")
    print_table(f"{endpoint_url}, probed below {state.uri}probes/", heads, rows)
    for finding in findings:
        if finding.detail:
            print_line(f"{finding.condition}: {finding.detail}")
