"""Reads the state machine file, and rejects what the local interpreter would get wrong.

The interpreter (moto's) parses more than it executes. The fields of a Map that the two definitions
use are listed here; a definition that uses others is rejected before it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from compactor_local.model import SUBSTITUTIONS, VALUES, EngineError
from compactor_local.tables_model import TABLES_SUBSTITUTIONS, TABLES_VALUES

ACCOUNT = "123456789012"
REGION = "us-east-1"

_SUBSTITUTION = re.compile(r"\$\{([A-Za-z0-9_]+)\}")
_LAMBDA = "arn:aws:states:::lambda:invoke"
_TOP_LEVEL = re.compile(r"\$\.\w+")
# Supported fields of a Map, and required values of some.
_MAP = frozenset(
    {
        "Type", "Comment", "Label", "ItemsPath", "ItemReader", "ItemSelector", "ItemBatcher",
        "ItemProcessor", "MaxConcurrency", "MaxConcurrencyPath", "ToleratedFailurePercentage",
        "ResultWriter", "ResultSelector", "ResultPath", "Catch", "Next", "End",
    }
)  # fmt: skip
_PARTS: Mapping[str, frozenset[str]] = {
    "ItemReader": frozenset({"Resource", "ReaderConfig", "Parameters"}),
    "ItemBatcher": frozenset({"MaxItemsPerBatchPath", "MaxInputBytesPerBatch", "BatchInput"}),
    "ResultWriter": frozenset({"Resource", "Parameters"}),
}
_VALUES: Mapping[tuple[str, str], object] = {
    ("ItemReader", "Resource"): "arn:aws:states:::s3:getObject",
    ("ItemReader", "ReaderConfig"): {"InputType": "JSON"},
    ("ResultWriter", "Resource"): "arn:aws:states:::s3:putObject",
}
# Failed children never fail a Map Run here, which equals AWS only at 100 %.
_ALL_PERCENT = 100


class UnsupportedDefinition(EngineError):
    """The definition uses something that this engine would not do as AWS does."""

    def __init__(self, findings: Collection[str]) -> None:
        super().__init__("the local engine cannot run this definition: " + "; ".join(findings))
        self.findings = tuple(findings)


def function_arn(name: str) -> str:
    """Return the ARN of a function on this machine."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def load_definition(path: Path, bridged: Collection[str] = ()) -> str:
    """Return the definition's text with its substitutions filled in.

    Args:
        path: the state machine file.
        bridged: task resources with stand-ins.

    Raises:
        EngineError: the file is missing, is not JSON, or has an unknown substitution.
        UnsupportedDefinition: the interpreter cannot run it.
    """
    try:
        text = path.read_text(encoding="utf-8")
        text = _SUBSTITUTION.sub(_substitute, text)
        findings = list(find_unsupported(json.loads(text), bridged))
    except OSError as error:
        raise EngineError(f"cannot read the state machine {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise EngineError(f"the state machine {path} is not JSON: {error}") from error
    if findings:
        raise UnsupportedDefinition(findings)
    return text


def _substitute(match: re.Match[str]) -> str:
    functions = {**SUBSTITUTIONS, **TABLES_SUBSTITUTIONS}
    values = {**VALUES, **TABLES_VALUES}
    if match[1] in functions:
        return function_arn(functions[match[1]])
    if match[1] in values:
        return values[match[1]]
    raise EngineError(f"the definition has an unknown substitution {match[0]}")


def each_state(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every state of a definition with its name, including those in Map and Parallel."""
    for name, state in machine.get("States", {}).items():
        yield name, state
        processor = state.get("ItemProcessor") or state.get("Iterator") or {}
        for inner in (processor, *state.get("Branches", ())):
            yield from each_state(inner)


def find_unsupported(machine: Mapping[str, Any], bridged: Collection[str] = ()) -> Iterator[str]:
    """Yield what the interpreter ignores or fails on, one line each."""
    if machine.get("QueryLanguage", "JSONPath") != "JSONPath":
        yield "QueryLanguage JSONata is not evaluated"
    for name, state in each_state(machine):
        findings = [*_common(state)]
        if state.get("Type") == "Task":
            findings += _task(state, bridged)
        if state.get("Type") == "Map":
            findings += _map(state)
        yield from (f"state {name}: {finding}" for finding in findings)


def _common(state: Mapping[str, Any]) -> Iterator[str]:
    if state.get("QueryLanguage", "JSONPath") != "JSONPath":
        yield "QueryLanguage JSONata is not evaluated"
    if "Assign" in state:
        yield "Assign is not supported"


def _task(state: Mapping[str, Any], bridged: Collection[str]) -> Iterator[str]:
    resource = state.get("Resource", "")
    if resource != _LAMBDA and resource not in bridged:
        yield f"Resource {resource} has neither support nor a bridge"
    if "Credentials" in state:
        yield "Credentials are ignored"


def _map(state: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown("a Map's", state, _MAP)
    for part, known in _PARTS.items():
        yield from _unknown(part, state.get(part, {}), known)
    for (part, field), value in _VALUES.items():
        given = state.get(part, {field: value}).get(field)
        if given != value:
            yield f"{part} {field} {given} is not supported"
    config = state.get("ItemProcessor", {}).get("ProcessorConfig", {})
    if config.get("ExecutionType") == "EXPRESS":
        yield "ExecutionType EXPRESS children are run as STANDARD ones"
    percentage = state.get("ToleratedFailurePercentage")
    if config.get("Mode") == "DISTRIBUTED" and percentage != _ALL_PERCENT:
        yield "ToleratedFailurePercentage other than 100.0 is not enforced"
    yield from _batcher(state)


def _unknown(part: str, given: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    for field in sorted(given.keys() - known):
        yield f"{part} {field} is not supported"


def _batcher(state: Mapping[str, Any]) -> Iterator[str]:
    batcher = state.get("ItemBatcher")
    if batcher is None:
        return
    if not all(_TOP_LEVEL.fullmatch(str(path)) for path in batcher.get("BatchInput", {}).values()):
        yield "ItemBatcher BatchInput is only supported for paths to fields of the input"
    if "ItemSelector" in state:
        yield "ItemSelector is not supported together with ItemBatcher"
    if "MaxItemsPerBatchPath" not in batcher or "Label" not in state:
        yield "ItemBatcher needs a MaxItemsPerBatchPath, and its Map a Label"
