"""What the validators miss in a definition; each check returns its findings, one line each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compactor_local.definition import each_state

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
_LAMBDA = "arn:aws:states:::lambda:invoke"
_ADD_STEP = "arn:aws:states:::elasticmapreduce:addStep.sync"
_START_JOB_RUN = "arn:aws:states:::emr-serverless:startJobRun.sync"
_QUERY = "arn:aws:states:::athena:startQueryExecution.sync"
_LIST = "arn:aws:states:::aws-sdk:s3:listObjectsV2"
# The integrations this project uses; a new one is added on purpose.
_RESOURCES = {_LAMBDA, _ADD_STEP, _START_JOB_RUN, _QUERY, _LIST}
_JOBS = {_ADD_STEP, _START_JOB_RUN, _QUERY}
_AN_HOUR = 3_600
# What an error of any kind matches, or one of any kind but a time-out.
_ANY_ERROR = {"States.ALL", "States.TaskFailed"}


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
        if state.get("Type") == "Task" and not {"TimeoutSeconds", "TimeoutSecondsPath"} & {*state}:
            yield name


def tasks_that_could_repeat_the_callers_mistake(machine: Machine) -> Iterator[str]:
    never = {"ErrorEquals": ["IntegrityError", "InvalidInput"], "MaxAttempts": 0}
    for name, state in each_state(machine):
        if state.get("Resource") == _LAMBDA and state.get("Retry", [None])[0] != never:
            yield name


def tasks_without_retry(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        if state.get("Type") == "Task" and not state.get("Retry"):
            yield name


def jobs_that_are_repeated_when_they_fail(machine: Machine) -> Iterator[str]:
    for name, state in each_state(machine):
        for place, rule in enumerate(state.get("Retry", [])):
            if state.get("Resource") in _JOBS and _ANY_ERROR & {*rule["ErrorEquals"]}:
                yield f"{name}: Retry[{place}]"


def ends_without_a_report(machine: Machine) -> Iterator[str]:
    """Ways from the list of partitions to an end that pass no report, by their last state."""
    for path in _ways(machine["States"], "AnyPartitions", (), _reports):
        yield " -> ".join(path)


def tables_without_an_end(machine: Machine) -> Iterator[str]:
    """Ways of a table's child execution to an end that pass no EndTable, by their last state."""
    child = machine["States"]["MaintainTables"]["ItemProcessor"]
    for path in _ways(child["States"], child["StartAt"], (), _ends_a_table):
        yield " -> ".join(path)


def runs_of_tables_without_a_report(machine: Machine) -> Iterator[str]:
    """Ways from the list of tables to an end that pass no report, by their last state."""
    for path in _ways(machine["States"], "IsThereATable", (), _reports):
        yield " -> ".join(path)


def engines_before_their_lease(machine: Machine) -> Iterator[str]:
    """Ways to what changes a table that do not take its lease first, by their last state."""
    child = machine["States"]["MaintainTables"]["ItemProcessor"]
    for path in _ways_to(child["States"], child["StartAt"], (), _changes_a_table):
        if "PlanTable" not in path:
            yield " -> ".join(path)


def map_runs_that_return_all_results(machine: Machine) -> Iterator[str]:
    # Without a writer they are the state's output, which ends the run beyond 256 KiB.
    for name, state in _map_runs(machine):
        if "ResultWriter" not in state:
            yield name


def map_runs_without_a_label_of_their_own(machine: Machine) -> Iterator[str]:
    labels = [state.get("Label") for _, state in _map_runs(machine)]
    for name, state in _map_runs(machine):
        if state.get("Label") is None or labels.count(state["Label"]) > 1:
            yield name


def _map_runs(machine: Machine) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, state in each_state(machine):
        config = state.get("ItemProcessor", {}).get("ProcessorConfig", {})
        if config.get("Mode") == "DISTRIBUTED":
            yield name, state


def _reports(state: Mapping[str, Any]) -> bool:
    return "Report" in str(state.get("Parameters", {}).get("FunctionName"))


def _ends_a_table(state: Mapping[str, Any]) -> bool:
    return "EndTable" in str(state.get("Parameters", {}).get("FunctionName"))


def _changes_a_table(state: Mapping[str, Any]) -> bool:
    return state.get("Resource") in _JOBS


def _ways_to(
    states: Mapping[str, Any],
    name: str,
    before: tuple[str, ...],
    wanted: Callable[[Mapping[str, Any]], bool],
) -> Iterator[tuple[str, ...]]:
    """Every way from a state to one that is wanted."""
    if name in before:
        return
    path = (*before, name)
    if wanted(states[name]):
        yield path
        return
    for other in _following(states[name]):
        yield from _ways_to(states, other, path, wanted)


def _ways(
    states: Mapping[str, Any],
    name: str,
    before: tuple[str, ...],
    stops: Callable[[Mapping[str, Any]], bool],
) -> Iterator[tuple[str, ...]]:
    """Every way from a state to an end on which nothing ``stops``."""
    state, path = states[name], (*before, name)
    if stops(state) or name in before:
        return
    following = _following(state)
    if "Next" not in state and "Choices" not in state:
        yield path
    if state.get("Type") in {"Task", "Map", "Parallel"} and not _catches_all(state):
        yield (*path, "an error that nobody catches")
    for other in following:
        yield from _ways(states, other, path, stops)


def _following(state: Mapping[str, Any]) -> list[str]:
    rules = (*state.get("Choices", ()), *state.get("Catch", ()))
    named = [state.get("Next"), state.get("Default"), *(rule["Next"] for rule in rules)]
    return [name for name in named if name is not None]


def _catches_all(state: Mapping[str, Any]) -> bool:
    return any("States.ALL" in rule["ErrorEquals"] for rule in state.get("Catch", ()))


def retries_in_step(machine: Machine) -> Iterator[str]:
    wanted = {"BackoffRate", "MaxDelaySeconds", "MaxAttempts"}
    for name, state in each_state(machine):
        for place, rule in enumerate(state.get("Retry", [])):
            spread = rule.get("JitterStrategy") == "FULL" and wanted <= rule.keys()
            if rule.get("MaxAttempts") != 0 and not spread:
                yield f"{name}: Retry[{place}]"


def throttled_invocations_that_give_up_within_an_hour(machine: Machine) -> Iterator[str]:
    """Lambda throttles while other functions run, and those run for a quarter of an hour.

    A wait is anything up to its delay (jitter FULL), so that they add up to half of all delays;
    four standard deviations less is what only one in 30,000 stays below.
    """
    for name, state in each_state(machine):
        if state.get("Resource") != _LAMBDA:
            continue
        (rule, *more) = [
            one
            for one in state.get("Retry", [])
            if "Lambda.TooManyRequestsException" in one["ErrorEquals"]
        ] or [{"MaxAttempts": 0}]
        if more or _least_wait(rule) < _AN_HOUR:
            yield name


def _least_wait(rule: Mapping[str, Any]) -> float:
    delays = [
        min(rule["IntervalSeconds"] * rule["BackoffRate"] ** n, rule["MaxDelaySeconds"])
        for n in range(rule["MaxAttempts"])
    ]
    deviation = (sum(delay**2 for delay in delays) / 12) ** 0.5
    return float(sum(delays) / 2 - 4 * deviation)


def invocations_that_retry_otherwise(machine: Machine) -> Iterator[str]:
    """Invocations whose retriers are not those of most; a partition may also change meanwhile."""
    shown = {
        name: json.dumps([one for one in state["Retry"] if one["ErrorEquals"] != ["SourceChanged"]])
        for name, state in each_state(machine)
        if state.get("Resource") == _LAMBDA
    }
    usual = Counter(shown.values()).most_common(1)[0][0]
    yield from (name for name, retriers in shown.items() if retriers != usual)


def functions_of_a_vpc_that_are_not_awaited(machine: Machine) -> Iterator[str]:
    """Invocations that fail while Lambda connects an idle function to its VPC again.

    These errors are of botocore's model of Lambda's Invoke.
    """
    errors = ("ResourceNotReadyException", "ResourceConflictException", "ENINotReadyException")
    for name, state in each_state(machine):
        if state.get("Resource") == _LAMBDA:
            retried = {error for rule in state.get("Retry", []) for error in rule["ErrorEquals"]}
            yield from (f"{name}: {one}" for one in errors if f"Lambda.{one}" not in retried)


def names_used_twice(machine: Machine) -> Iterator[str]:
    names = [name for name, _ in each_state(machine)]
    yield from (name for name in sorted({*names}) if names.count(name) > 1)


#: Of every definition.
COMMON: tuple[Callable[[Machine], Iterator[str]], ...] = (
    distributed_fields_in_inline_maps,
    unknown_resources,
    states_all_not_last_and_alone,
    sync_tasks_in_express_children,
    states_without_comment,
    tasks_without_timeout,
    tasks_that_could_repeat_the_callers_mistake,
    tasks_without_retry,
    jobs_that_are_repeated_when_they_fail,
    map_runs_that_return_all_results,
    map_runs_without_a_label_of_their_own,
    retries_in_step,
    throttled_invocations_that_give_up_within_an_hour,
    invocations_that_retry_otherwise,
    functions_of_a_vpc_that_are_not_awaited,
    names_used_twice,
)
#: Of the definition of a compaction.
CHECKS = (*COMMON, ends_without_a_report)
#: Of the definition of maintenance.
TABLES_CHECKS = (
    *COMMON,
    tables_without_an_end,
    runs_of_tables_without_a_report,
    engines_before_their_lease,
)
