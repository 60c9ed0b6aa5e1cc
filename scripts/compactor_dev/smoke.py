"""``make smoke``: deploys stacks of its own, runs the list of the smoke test, removes everything.

``python -m compactor_dev.smoke --clean`` removes what killed ones left.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compactor.errors import CompactorError
from compactor_cli.commands.account import region_of_environment
from compactor_cli.commands.asking import is_agreed, require_answer
from compactor_cli.commands.store import open_store
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.stack import Stack, find_stack
from compactor_cli.smoke import objects
from compactor_cli.smoke.session import BUDGET, Actions, contexts, whole_test
from compactor_cli.smoke.world import Names, World
from compactor_dev import REPOSITORY

_REPORT = "smoke-report.txt"
# Only the shape of its configuration counts when a stack is destroyed.
_ANY_KEY = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"


def command(target: str, context: Mapping[str, Any]) -> list[str]:
    """Return the command that deploys or destroys a stack.

    Args:
        target: ``deploy`` or ``destroy``.
        context: keys of the deployment.
    """
    words = ["--require-approval", "never"] if target == "deploy" else ["--force"]
    for name, value in context.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["-c", f"{name}={text}"]
    given = shlex.join(words).replace("$", "$$")
    return ["make", "--no-print-directory", target, f"ARGS={given}"]


def destroyer(
    names: Names, run: Callable[[Sequence[str]], None], clients: objects.Clients
) -> Callable[[str], None]:
    """Return what removes a stack of a test by its name, if it is there."""
    by_name = {one["name"]: one for one in contexts(names, _ANY_KEY).values()}

    def destroy(stack: str) -> None:
        # ValidationError, "does not exist": there is nothing to remove.
        clients("cloudformation").describe_stacks(StackName=stack)
        run(command("destroy", by_name[stack]))

    return destroy


def clean(clients: objects.Clients, run: Callable[[Sequence[str]], None]) -> list[str]:
    """Remove everything that smoke tests left; return what could not be removed."""
    failures = []
    for suffix in sorted(objects.left(clients)):
        names = Names(suffix)
        failures += objects.remove(clients, names, destroyer(names, run, clients))
    return failures


def main(words: Sequence[str]) -> int:
    """Run the smoke test, or remove what others left; return the exit code."""
    args = _arguments(words)
    try:
        with region_of_environment():
            require_answer(args)
            return _clean(args) if args.clean else _test(args)
    except CompactorError as error:
        sys.stderr.write(f"s3-compactor: {error}\n")
        return 2


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make smoke", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="ask for no confirmation")
    parser.add_argument("--clean", action="store_true", help="remove what others left")
    parser.add_argument("--report", default=_REPORT, metavar="FILE")
    parser.add_argument("--vpc", type=json.loads, metavar="KEY", help="the key vpc, as JSON")
    parser.add_argument("--endpoint", default="", help="id of the VPC's endpoint for S3")
    parser.set_defaults(json=False)
    args = parser.parse_args(words)
    if bool(args.vpc) != bool(args.endpoint):
        parser.error("--vpc and --endpoint need each other")
    return args


def _clean(args: argparse.Namespace) -> int:
    aws = Aws()
    found = sorted(objects.left(aws.client))
    if not found:
        print("no smoke test left anything")
        return 0
    if not is_agreed(args, f"remove all of the smoke tests {', '.join(found)}?"):
        return 0
    failures = clean(aws.client, _run)
    print("\n".join([f"not removed: {one}" for one in failures] or ["everything was removed"]))
    return int(bool(failures))


def _test(args: argparse.Namespace) -> int:
    print(BUDGET, flush=True)
    if not is_agreed(args, "deploy, test and remove?"):
        return 0
    aws, names, counts = Aws(), Names(secrets.token_hex(4)), Counter[str]()
    s3 = aws.client("s3")
    s3.meta.events.register("before-call.s3", lambda model, **_: counts.update([model.name]))

    def deploy(context: Mapping[str, Any]) -> Stack:
        _run(command("deploy", context))
        return find_stack(aws, context["name"])

    actions = Actions(deploy, destroyer(names, _run, aws.client), _show, args.vpc)
    store, endpoint = open_store(), args.endpoint
    world = World(aws.client, store, names, {}, own=True, endpoint=endpoint, counts=counts)
    code, report = whole_test(world, actions)
    Path(args.report).write_text(report, encoding="utf-8")
    print(f"{report}\nreport: {args.report}")
    return code


def _show(line: str) -> None:
    print(line, flush=True)


def _run(words: Sequence[str]) -> None:
    # In its own session: a terminal's interrupt reaches this process, which then removes all.
    ended = subprocess.run(words, cwd=REPOSITORY, check=False, start_new_session=True)
    if ended.returncode:
        raise RuntimeError(f"make {words[2]} ended with status {ended.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
