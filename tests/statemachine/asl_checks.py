"""What the validators miss in a definition; each check returns its findings, one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scripts.local.definition import each_state

Machine = Mapping[str, Any]

_DISTRIBUTED_ONLY = {
    "Label",
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
    "ToleratedFailureCount",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentage",
    "ToleratedFailurePercentagePath",
}
# The integrations this project uses or is about to; a new one is added on purpose.
_RESOURCES = {
    "arn:aws:states:::lambda:invoke",
    "arn:aws:states:::elasticmapreduce:addStep.sync",
    "arn:aws:states:::emr-serverless:startJobRun.sync",
}


def distributed_fields_in_inline_maps(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        config = state.get("ItemProcessor", {}).get("ProcessorConfig", {})
        if state.get("Type") == "Map" and config.get("Mode", "INLINE") != "DISTRIBUTED":
            yield from (f"{name}: {field}" for field in sorted(_DISTRIBUTED_ONLY & state.keys()))


def unknown_resources(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        if state.get("Type") == "Task" and state.get("Resource") not in _RESOURCES:
            yield f"{name}: {state.get('Resource')}"


def states_all_not_last_and_alone(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        for field in ("Retry", "Catch"):
            rules = state.get(field, [])
            for place, rule in enumerate(rules):
                errors = rule["ErrorEquals"]
                if "States.ALL" in errors and (len(errors) > 1 or place + 1 < len(rules)):
                    yield f"{name}: {field}[{place}]"


def sync_tasks_in_express_children(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        processor = state.get("ItemProcessor", {})
        if processor.get("ProcessorConfig", {}).get("ExecutionType") == "EXPRESS":
            for inner, task in each_state(processor):
                if ".sync" in task.get("Resource", "") or ".waitFor" in task.get("Resource", ""):
                    yield f"{name}: {inner}"


def states_without_comment(machine: Machine) -> Iterator[str]:
    yield from (name for name, state in each_state(machine) if not state.get("Comment"))


def tasks_without_timeout(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        if state.get("Type") == "Task" and "TimeoutSeconds" not in state:
            yield name


def tasks_that_could_repeat_the_callers_mistake(machine: Machine) -> Iterator[str]:
    never = {"ErrorEquals": ["IntegrityError", "InvalidInput"], "MaxAttempts": 0}
    for name, state in each_state(machine):
        if state.get("Type") == "Task" and state.get("Retry", [None])[0] != never:
            yield name


def retries_in_step(machine: Machine) -> Iterator[str]:
    wanted = {"BackoffRate", "MaxDelaySeconds", "MaxAttempts"}
    for name, state in each_state(machine):
        for place, rule in enumerate(state.get("Retry", [])):
            spread = rule.get("JitterStrategy") == "FULL" and wanted <= rule.keys()
            if rule.get("MaxAttempts") != 0 and not spread:
                yield f"{name}: Retry[{place}]"


def names_used_twice(machine: Machine) -> Iterator[str]:
    names = [name for name, _ in each_state(machine)]
    yield from (name for name in sorted({*names}) if names.count(name) > 1)


CHECKS: tuple[Callable[[Machine], Iterator[str]], ...] = (
    distributed_fields_in_inline_maps,
    unknown_resources,
    states_all_not_last_and_alone,
    sync_tasks_in_express_children,
    states_without_comment,
    tasks_without_timeout,
    tasks_that_could_repeat_the_callers_mistake,
    retries_in_step,
    names_used_twice,
)
