"""Options that name a deployed stack, and looking it up."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

from compactor import __version__
from compactor_cli.console import print_note
from compactor_cli.deployed import executions
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.stack import Stack, find_stack

STACK_VARIABLE = "COMPACTOR_STACK"
DEFAULT_STACK = "s3-compactor"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployed stack and AWS clients for it."""

    aws: Aws
    stack: Stack

    def run(self, run: str | None) -> Execution:
        """Return the named run, or the last one if no name is given.

        Raises:
            InvalidInput: there is no such run.
            Failure: there are no runs, or a permission is missing.
        """
        return executions.chosen(self.aws, self.stack.state_machine_arn, run)


def add_deployment(parser: argparse.ArgumentParser) -> None:
    """``--stack``, ``--region`` and ``--json``."""
    add_stack(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def add_stack(parser: argparse.ArgumentParser) -> None:
    """``--stack`` and ``--region``."""
    parser.add_argument(
        "--stack",
        metavar="NAME",
        default=os.environ.get(STACK_VARIABLE) or DEFAULT_STACK,
        help=f"CloudFormation stack (by default {STACK_VARIABLE}, else {DEFAULT_STACK})",
    )
    parser.add_argument("--region", help="region of the stack (by default as boto3 finds it)")


def add_run(parser: argparse.ArgumentParser) -> None:
    """``RUN``."""
    parser.add_argument(
        "run_id", metavar="RUN", nargs="?", help="run id or execution ARN (by default the last run)"
    )


def find_deployment(args: argparse.Namespace) -> Deployment:
    """Find the stack that the options name.

    Raises:
        InvalidInput: there is no such stack.
        Failure: a permission is missing.
    """
    aws = Aws(args.region)
    stack = find_stack(aws, args.stack)
    _compare_versions(stack)
    return Deployment(aws, stack)


def _compare_versions(stack: Stack) -> None:
    """Warn when versions differ: fields and reports may differ, but most commands work."""
    deployed = stack.outputs.get("SpecVersion")
    if deployed is not None and deployed != __version__:
        print_note(
            f"compactor: the stack {stack.name} has version {deployed}, this is {__version__}"
        )
