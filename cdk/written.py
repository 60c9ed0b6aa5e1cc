"""Summarizes the result of ``make synth`` in one line: the template, and its resources by type.

``python -m cdk.written ...`` takes the arguments that ``cdk synth`` was given.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_SHOWN_KINDS = 8


def in_one_line(directory: Path) -> str:
    """Return one line about the only template of an assembly.

    Args:
        directory: where the CDK wrote the assembly.

    Raises:
        FileNotFoundError: there is no assembly.
    """
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    (stack,) = (
        one for one in manifest["artifacts"].values() if one["type"] == "aws:cloudformation:stack"
    )
    path = directory / stack["properties"]["templateFile"]
    resources = json.loads(path.read_text(encoding="utf-8"))["Resources"]
    kinds = Counter(one["Type"].removeprefix("AWS::") for one in resources.values())
    shown = kinds.most_common(_SHOWN_KINDS)
    texts = [f"{count} {kind}" for kind, count in shown]
    others = len(resources) - sum(count for _, count in shown)
    if others:
        texts.append(f"{others} others")
    return f"{path}: {len(resources)} resources: {', '.join(texts)}"


def directory_of(words: Sequence[str]) -> Path:
    """Return where ``cdk synth`` writes with these arguments: -o or --output, else cdk.out."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-o", "--output", type=Path, default=Path("cdk.out"))
    output: Path = parser.parse_known_args(words)[0].output
    return output


if __name__ == "__main__":
    sys.stdout.write(f"{in_one_line(directory_of(sys.argv[1:]))}\n")
