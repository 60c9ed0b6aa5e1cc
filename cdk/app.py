"""What `cdk synth` and `cdk deploy` start; ``synthesize`` does the same within a program."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from cdk import checks
from cdk.config import Config
from cdk.stack import CompactorStack
from compactor.errors import InvalidInput
from compactor_dev import REPOSITORY

_FLAGS = Path(__file__).with_name("flags.json")
_NO_BUNDLING: Mapping[str, Any] = {"aws:cdk:bundling-stacks": []}


def read_flags() -> dict[str, Any]:
    """The CDK's feature flags: not beside the deployment's own keys, which a person writes."""
    flags: dict[str, Any] = json.loads(_FLAGS.read_text(encoding="utf-8"))
    return flags


def read_context() -> dict[str, Any]:
    """The flags and the context of cdk.json, which only the command line reads by itself."""
    document = json.loads((REPOSITORY / "cdk.json").read_text(encoding="utf-8"))
    return {**read_flags(), **document["context"]}


def build(context: Mapping[str, Any], outdir: Path | None = None) -> cdk.App:
    """An app ready for ``synth()``, which then fails on what the checks find.

    Args:
        context: keys of the configuration, over the context of cdk.json.
        outdir: where the assembly goes; a directory of its own by default.

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
    """The template for a configuration; nothing is bundled, and every check passed.

    Raises:
        InvalidInput: a key or value is not accepted.
        RuntimeError: a check found something.
    """
    outdir = Path(tempfile.mkdtemp(prefix="compactor-synth-"))
    try:
        assembly = build({**_NO_BUNDLING, **context}, outdir).synth()
        template: dict[str, Any] = assembly.stacks[0].template
        return template
    finally:
        shutil.rmtree(outdir, ignore_errors=True)


def main() -> int:
    """Synthesize for the CDK's command line, which gives the context; returns the exit code."""
    # What the command line gives, by -c or of cdk.json, is over these.
    app = cdk.App(context=read_flags(), analytics_reporting=False)
    try:
        _filled(app)
    except InvalidInput as error:
        sys.stderr.write(f"s3-compactor: {error}\n")
        return 2
    app.synth()
    return 0


def _filled(app: cdk.App) -> cdk.App:
    config = Config.from_context(app.node.get_all_context())
    CompactorStack(app, config)
    checks.attach(app, config)
    return app


if __name__ == "__main__":
    sys.exit(main())
