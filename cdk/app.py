"""The entry point of `cdk synth` and `cdk deploy`; ``build`` does the same in a program."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from cdk.compaction import CompactionStack
from cdk.config import Deployment, load
from cdk.maintenance import MaintenanceStack
from compactor.errors import InvalidInput

_FLAGS = Path(__file__).with_name("flags.json")
#: Synthesizes without building bundles.
NO_BUNDLING: Mapping[str, Any] = {"aws:cdk:bundling-stacks": []}
# The only key of the context that is ours.
_CONFIG = "config"
# Keys of the CDK's own tools that neither start with @ nor contain a colon.
_OTHERS = frozenset({"acknowledged-issue-numbers", "cli-telemetry"})


def read_flags() -> dict[str, Any]:
    """Return the CDK's feature flags, kept apart from what a person writes into cdk.json."""
    flags: dict[str, Any] = json.loads(_FLAGS.read_text(encoding="utf-8"))
    return flags


def build(
    deployment: Deployment, outdir: Path | None = None, context: Mapping[str, Any] = NO_BUNDLING
) -> cdk.App:
    """Return an app whose ``synth()`` fails on any finding of the checks.

    Args:
        deployment: what to deploy.
        outdir: where the assembly is written; a new directory by default.
        context: of the CDK, besides its flags.

    Raises:
        InvalidInput: a value is not accepted.
    """
    directory = str(outdir) if outdir else None
    given = {**read_flags(), **context}
    app = cdk.App(context=given, outdir=directory, analytics_reporting=False)
    return fill(app, deployment)


def fill(app: cdk.App, deployment: Deployment) -> cdk.App:
    """Add the stacks of a deployment, and the checks of every synth."""
    if deployment.compacts:
        CompactionStack(app, deployment)
    if deployment.maintenance is not None:
        MaintenanceStack(app, deployment, deployment.maintenance)
    check(app)
    return app


def check(app: cdk.App) -> None:
    """Make every synth of an app fail on findings that are not acknowledged."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def config_path(context: Mapping[str, Any]) -> Path | None:
    """Return the path that ``-c config=PATH`` gives.

    Raises:
        InvalidInput: the context has a key that belongs into the file.
    """
    for key, value in context.items():
        if not (key.startswith("@") or ":" in key or key in _OTHERS or key == _CONFIG):
            accepted = "-c config=PATH alone; all other keys belong into deployment.toml"
            raise InvalidInput(key, value, accepted)
    return Path(context[_CONFIG]) if _CONFIG in context else None


def main() -> int:
    """Synthesize with the context of the CDK's command line; return the exit code."""
    # The context of the command line (-c, cdk.json) overrides these.
    app = cdk.App(context=read_flags(), analytics_reporting=False)
    try:
        deployment = load(config_path(app.node.get_all_context()))
        # The CDK's command line names the region of the deployment here.
        deployment.require_region(os.environ.get("CDK_DEFAULT_REGION"))
        fill(app, deployment)
    except InvalidInput as error:
        sys.stderr.write(f"s3-compactor: {error}\n")
        return 2
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
