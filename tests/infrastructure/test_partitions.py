"""What is deployed names no partition: GovCloud's and China's ARNs begin otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.configurations import EVERY
from tests.infrastructure.conftest import Synthesized

_PSEUDO = {
    "aws-us-gov": {"AWS::Region": "us-gov-west-1", "AWS::URLSuffix": "amazonaws.com"},
    "aws-cn": {"AWS::Region": "cn-north-1", "AWS::URLSuffix": "amazonaws.com.cn"},
}
_ARN = re.compile(r"arn:([a-z-]*):")


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """A part of a template with its pseudo parameters; other references by their names."""
    if isinstance(value, list):
        return [_filled(one, known) for one in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"Ref"}:
        return known.get(value["Ref"], value["Ref"])
    if value.keys() == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        if isinstance(parts, list):
            return separator.join(str(_filled(part, known)) for part in parts)
    if value.keys() == {"Fn::Sub"}:
        return re.sub(r"\$\{([^}]+)\}", lambda m: known.get(m[1], m[1]), str(value["Fn::Sub"]))
    return {name: _filled(one, known) for name, one in value.items()}


def _definition(assembly: Assembly, known: Mapping[str, str]) -> Iterator[str]:
    """The state machine's definition as CloudFormation fills it in."""
    for machine in assembly.resources("AWS::StepFunctions::StateMachine").values():
        substitutions = _filled(machine["DefinitionSubstitutions"], known)
        texts = [
            one.path.read_text(encoding="utf-8")
            for one in assembly.assets()
            if one.path.is_file() and '"StartAt"' in one.path.read_text(encoding="utf-8")[:2_000]
        ]
        (text,) = [
            one
            for one in texts
            if {*re.findall(r"\$\{(\w+)\}", one)} == machine["DefinitionSubstitutions"].keys()
        ]
        for name, value in substitutions.items():
            text = text.replace(f"${{{name}}}", str(value))
        yield text


def _texts(given: object) -> Iterator[object]:
    """What a configuration is given, that within objects too."""
    if isinstance(given, Mapping):
        for one in given.values():
            yield from _texts(one)
    else:
        yield given


@pytest.mark.parametrize("partition", sorted(_PSEUDO))
def test_every_arn_is_of_the_partition_that_is_deployed_to(
    every_configuration: str, partition: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(every_configuration)
    known = {**_PSEUDO[partition], "AWS::Partition": partition, "AWS::AccountId": "123456789012"}
    text = _without_given(json.dumps(_filled(assembly.template, known)), every_configuration)
    definitions = [_without_given(one, every_configuration) for one in _definition(assembly, known)]

    assert {*_ARN.findall(text)} <= {partition}
    compacts = EVERY[every_configuration].get("mode", "workflow") == "workflow"
    assert len(definitions) == compacts + ("maintenance" in EVERY[every_configuration])
    for definition in definitions:
        json.loads(definition)
        assert f'"arn:{partition}:states:::lambda:invoke"' in definition
        assert {*_ARN.findall(definition)} == {partition}


def _without_given(text: str, configuration: str) -> str:
    """A text without the ARNs that a configuration was given."""
    for given in _texts(EVERY[configuration]):
        address = str(given)
        if address.startswith("arn:"):
            text = text.replace(address.partition("#")[0], "given")
    return text
