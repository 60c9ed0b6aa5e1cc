"""A smoke test from its first bucket to the removal of the last."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from compactor import __version__
from compactor_cli.commands import interrupted_by_sigterm
from compactor_cli.stack import Stack
from tests.aws import objects
from tests.aws.checks import FAILED, Check, Result, run_checks
from tests.aws.deployment import documents
from tests.aws.listed import CHECKS
from tests.aws.report import redacted, written
from tests.aws.run_checks import spent
from tests.aws.world import World

BUDGET = """\
at most 30 minutes, the last eight for the removal, and one dollar (list prices of us-east-1):
  two stacks of this version; 2,100 small objects       $0.02
  a dozen runs: Lambda, Step Functions, requests        $0.05
  three jobs of EMR Serverless, four vCPUs each         $0.60
  Athena, KMS key (then in deletion)                    $0.20"""

_ASKED_DOLLARS = 0.005 / 1_000


@dataclass(frozen=True, slots=True)
class Actions:
    """What a session does beyond requests to AWS.

    Attributes:
        deploy: synthesizes and checks the stacks with these keys, then deploys each; returns them
            by what they are for.
        destroy: removes a stack, by name.
        show: prints a line.
        vpc: the deployment's key of this name, for the stack of runs; None for no VPC.
    """

    deploy: Callable[[Mapping[str, Mapping[str, Any]]], Mapping[str, Stack]]
    destroy: Callable[[str], None]
    show: Callable[[str], None]
    vpc: Mapping[str, Any] | None = None


def whole_test(world: World, actions: Actions, checks: Sequence[Check] = CHECKS) -> tuple[int, str]:
    """Make everything, run the list, and remove everything, however it ends.

    Returns:
        The exit code and the report.
    """
    began, results, code = time.monotonic(), list[Result](), 0
    figures: list[str] = []
    with interrupted_by_sigterm():
        try:
            _make(world, actions)
            _run_list(checks, world, actions.show, results)
            figures.append(_cost(world))
            code = int(any(one.verdict == FAILED for one in results))
        except KeyboardInterrupt:
            figures.append(f"interrupted after {len(results)} checks")
            code = 130
        except Exception as error:
            figures.append(f"ended early: {error}")
            code = 1
        finally:
            with _undisturbed():
                actions.show("removing everything")
                failures = objects.remove(world.client, world.names, actions.destroy)
    figures += [f"not removed: {one}; repeat it with make smoke CLEAN=1" for one in failures]
    figures += [] if failures else ["everything was removed"]
    figures.append(f"s3-compactor {__version__}, {time.monotonic() - began:.0f} seconds")
    report = written(results, figures=figures, names=_names(world))
    return code or int(bool(failures)), report


def _run_list(
    checks: Sequence[Check], world: World, show: Callable[[str], None], results: list[Result]
) -> None:
    """Run the list; show each result, and add it to those that are known if it is interrupted."""
    for result in run_checks(checks, world):
        results.append(result)
        show(redacted(result.line, _names(world)))


def _make(world: World, actions: Actions) -> None:
    actions.show("making buckets, database and key")
    key = objects.make(world.client, world.names)
    actions.show("deploying three stacks")
    world.stacks = actions.deploy(documents(world.names, key, actions.vpc))
    actions.show(f"writing {2 * world.per_day:,} objects")
    for day in (objects.FIRST, objects.REDRIVEN):
        objects.put_day(world, day, world.per_day)


def _cost(world: World) -> str:
    dollars, asked = spent(world), sum(world.counts.values())
    own = asked * _ASKED_DOLLARS
    return (
        f"cost: ${dollars + own:.3f}: ${dollars:.3f} of {len(world.executions)} runs by their"
        f" reports, ${own:.3f} for {asked:,} requests of the test at the price of a PUT;"
        " Athena, KMS and Glue are not counted"
    )


def _names(world: World) -> set[str]:
    """Return names that identify the account or what is in it."""
    names = {*world.names.buckets, world.names.database, world.names.base}
    for stack in world.stacks.values():
        names |= {stack.name, *_strings(dict(stack.outputs))}
    return {one for one in names if len(one) > 2}


def _strings(document: object) -> Iterator[str]:
    """Yield what a stack's outputs name: buckets, functions, ARNs; all text with a hyphen."""
    if isinstance(document, Mapping):
        document = list(document.values())
    if isinstance(document, list):
        for value in document:
            yield from _strings(value)
    elif isinstance(document, str) and document.startswith(("{", "[")):
        yield from _strings(json.loads(document))
    elif isinstance(document, str) and re.search(r"[-:]", document):
        yield document
        if document.startswith("s3://"):
            yield document.split("/")[2]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore further interrupts, so that the removal is completed."""
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, signal.SIG_IGN) for kind in kinds]
    try:
        yield
    finally:
        for kind, one in zip(kinds, before, strict=True):
            signal.signal(kind, one)
