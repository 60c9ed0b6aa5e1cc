"""The entry point of `cdk synth` and `cdk deploy`; ``synthesize`` does the same in a program."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from cdk import REPOSITORY, checks
from cdk.config import Config
from cdk.config_checks import require_region
from cdk.stack import CompactorStack
from compactor.errors import InvalidInput

_FLAGS = Path(__file__).with_name("flags.json")
_NO_BUNDLING: Mapping[str, Any] = {"aws:cdk:bundling-stacks": []}


def read_flags() -> dict[str, Any]:
    """Return the CDK's feature flags, kept apart from the deployment's own keys."""
    flags: dict[str, Any] = json.loads(_FLAGS.read_text(encoding="utf-8"))
    return flags


def read_context() -> dict[str, Any]:
    """Return the flags and the context of cdk.json, which only the CDK's command line reads."""
    document = json.loads((REPOSITORY / "cdk.json").read_text(encoding="utf-8"))
    return {**read_flags(), **document["context"]}


def build(context: Mapping[str, Any], outdir: Path | None = None) -> cdk.App:
    """Return an app whose ``synth()`` fails on any finding of the checks.

    Args:
        context: keys of the configuration; they override the context of cdk.json.
        outdir: where the assembly is written; a new directory by default.

    Raises:
        InvalidInput: a key or value is not accepted.
    """
    app = cdk.App(
        context={**read_context(), **context},
        outdir=str(outdir) if outdir else None,
        analytics_reporting=False,
    )
    return _filled(app)


def synthesize(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template of a configuration, checked but without building bundles.

    Raises:
        InvalidInput: a key or value is not accepted.
        RuntimeError: a check has findings.
    """
    outdir = Path(tempfile.mkdtemp(prefix="compactor-synth-"))
    try:
        assembly = build({**_NO_BUNDLING, **context}, outdir).synth()
        template: dict[str, Any] = assembly.stacks[0].template
        return template
    finally:
        shutil.rmtree(outdir, ignore_errors=True)


def main() -> int:
    """Synthesize with the context of the CDK's command line; return the exit code."""
    # The context of the command line (-c, cdk.json) overrides these.
    app = cdk.App(context=read_flags(), analytics_reporting=False)
    try:
        # The CDK's command line names the region of the deployment here.
        _filled(app, os.environ.get("CDK_DEFAULT_REGION"))
    except InvalidInput as error:
        sys.stderr.write(f"s3-compactor: {error}\n")
        return 2
    app.synth()
    return 0


def _filled(app: cdk.App, region: str | None = None) -> cdk.App:
    config = Config.from_context(app.node.get_all_context())
    require_region(config, region)
    CompactorStack(app, config)
    checks.attach(app, config)
    return app


if __name__ == "__main__":
    sys.exit(main())
