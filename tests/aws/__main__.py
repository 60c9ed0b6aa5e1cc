"""``make smoke``: deploys stacks of its own, runs the list of the smoke test, removes everything.

``python -m tests.aws --clean`` removes what killed ones left.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compactor.errors import CompactorError
from compactor_cli.console import is_agreed, require_answer
from compactor_cli.failures import region_of_environment
from compactor_cli.stack import Aws, Stack, find_stack
from compactor_cli.store import open_store
from tests.aws import deployment, objects
from tests.aws.session import BUDGET, Actions, whole_test
from tests.aws.world import Names, World

_REPORT = "smoke-report.txt"


def clean(clients: objects.Clients) -> list[str]:
    """Remove everything that smoke tests left; return what could not be removed."""
    return [
        failure
        for suffix in sorted(objects.left(clients))
        for failure in objects.remove(
            clients, Names(suffix), lambda stack: deployment.destroy(stack, clients)
        )
    ]


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
    failures = clean(aws.client)
    print("\n".join([f"not removed: {one}" for one in failures] or ["everything was removed"]))
    return int(bool(failures))


def _test(args: argparse.Namespace) -> int:
    print(BUDGET, flush=True)
    if not is_agreed(args, "deploy, test and remove?"):
        return 0
    aws, names, counts = Aws(), Names(secrets.token_hex(4)), Counter[str]()
    s3 = aws.client("s3")
    s3.meta.events.register("before-call.s3", lambda model, **_: counts.update([model.name]))

    def deploy(documents: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Stack]:
        with TemporaryDirectory(prefix="compactor-smoke-") as directory:
            assemblies = {what: Path(directory, what) for what in documents}
            for what, document in documents.items():
                deployment.synthesize(document, names, assemblies[what], s3.meta.region_name)
            for assembly in assemblies.values():
                deployment.deploy(assembly, world.remaining_seconds)
        return {what: find_stack(aws, stack) for what, stack in names.stacks.items()}

    def destroy(stack: str) -> None:
        deployment.destroy(stack, aws.client)

    world = World(aws.client, open_store(), names, {}, endpoint=args.endpoint, counts=counts)
    code, report = whole_test(world, Actions(deploy, destroy, _show, args.vpc))
    Path(args.report).write_text(report, encoding="utf-8")
    print(f"{report}\nreport: {args.report}")
    return code


def _show(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
