"""The EventBridge rules that notify Step Functions when a ``.sync`` task ends.

Step Functions creates them under fixed names with the rights of the state machine's role. When a
machine is created, it requires the rights to the rules of *all* tasks in the definition, even those
that no run enters. So they are derived from the definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compactor.errors import InvalidInput

# The integration after arn:…:states:::, and the name of its rule ("IAM policies for integrated
# services" in the Step Functions guide, a page for each service).
_RULES: Mapping[str, str] = {
    "elasticmapreduce:addStep.sync": "StepFunctionsGetEventForEMRAddJobFlowStepsRule",
    "elasticmapreduce:createCluster.sync": "StepFunctionsGetEventForEMRRunJobFlowRule",
    "elasticmapreduce:terminateCluster.sync": "StepFunctionsGetEventForEMRTerminateJobFlowsRule",
    "emr-serverless:startJobRun.sync": "StepFunctionsGetEventsForEMRServerlessJobRule",
}
# Step Functions polls these services, so the guide's policies for them have no rule.
_POLLED = frozenset({"athena:startQueryExecution.sync"})
ACTIONS = ("events:PutTargets", "events:PutRule", "events:DescribeRule")


def managed_rules(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the rules that a definition needs, sorted.

    Args:
        definition: a definition in Amazon States Language.

    Raises:
        InvalidInput: it has a ``.sync`` integration whose rule is not known here.
    """
    return tuple(sorted({_rule_of(name) for name in _synchronous(definition)}))


def _synchronous(definition: Mapping[str, Any]) -> Iterator[str]:
    for state in _states(definition):
        integration = str(state.get("Resource", "")).rpartition(":states:::")[2]
        if ".sync" in integration and integration not in _POLLED:
            yield integration


def _states(definition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every state of a definition, including those in Map and Parallel."""
    for state in definition.get("States", {}).values():
        yield state
        for inner in (state.get("ItemProcessor", {}), *state.get("Branches", ())):
            yield from _states(inner)


def _rule_of(integration: str) -> str:
    if integration not in _RULES:
        accepted = f"one of {', '.join(_RULES)}: the rule of any other is to be added here"
        raise InvalidInput("Resource", integration, accepted)
    return _RULES[integration]
