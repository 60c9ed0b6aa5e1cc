"""What the CDK app synthesized, read as `cdk deploy` would read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from compactor_local.definition import ACCOUNT, REGION

_PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset: where it is, and where a deployment puts it."""

    path: Path
    zipped: bool
    bucket: str
    key: str


@dataclass(frozen=True)
class Assembly:
    """A cloud assembly with one stack.

    Attributes:
        directory: where it was synthesized.
    """

    directory: Path

    @cached_property
    def _stack(self) -> tuple[str, Mapping[str, Any]]:
        manifest = json.loads((self.directory / "manifest.json").read_text(encoding="utf-8"))
        stacks = [
            (name, artifact)
            for name, artifact in manifest["artifacts"].items()
            if artifact["type"] == "aws:cloudformation:stack"
        ]
        (stack,) = stacks
        return stack

    @property
    def name(self) -> str:
        """The stack's name."""
        name, artifact = self._stack
        return str(artifact["properties"].get("stackName", name))

    @cached_property
    def template_path(self) -> Path:
        """The template's place."""
        return self.directory / str(self._stack[1]["properties"]["templateFile"])

    @cached_property
    def template(self) -> Mapping[str, Any]:
        """The template."""
        found: Mapping[str, Any] = json.loads(self.template_path.read_text(encoding="utf-8"))
        return found

    def resources(self, *types: str) -> dict[str, Mapping[str, Any]]:
        """Properties of the resources of some types, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.template["Resources"].items()
            if resource["Type"] in types
        }

    def functions(self) -> dict[str, Mapping[str, Any]]:
        """Properties of the functions of the bundles; CDK's own programs are not among them."""
        found = self.resources("AWS::Lambda::Function")
        return {name: one for name, one in found.items() if name.startswith("Functions")}

    def assets(self) -> Iterator[Asset]:
        """Everything that the template refers to on S3."""
        (path,) = self.directory.glob("*.assets.json")
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        for file in files.values():
            (place,) = file["destinations"].values()
            yield Asset(
                path=self.directory / file["source"]["path"],
                zipped=file["source"]["packaging"] == "zip",
                bucket=filled(place["bucketName"]),
                key=place["objectKey"],
            )


def filled(text: str) -> str:
    """A text with the account, region and partition that it leaves open."""
    for name, value in _PSEUDO.items():
        text = text.replace(f"${{{name}}}", value)
    return text
