"""Summarizes the result of ``make synth`` in a line for each template, with its resources by type.

``python -m compactor_dev.written ...`` takes the arguments that ``cdk synth`` was given.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

_SHOWN_KINDS = 8


def lines(directory: Path) -> Iterator[str]:
    """Yield one line about each template of an assembly.

    Args:
        directory: where the CDK wrote the assembly.

    Raises:
        FileNotFoundError: there is no assembly.
    """
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    for artifact in manifest["artifacts"].values():
        if artifact["type"] == "aws:cloudformation:stack":
            yield _line(directory / artifact["properties"]["templateFile"])


def _line(path: Path) -> str:
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
    for line in lines(directory_of(sys.argv[1:])):
        sys.stdout.write(f"{line}\n")
