"""Whether everything that a deployment did was allowed to whoever did it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.infrastructure.cloud import engine
from tests.infrastructure.cloud.deployment import Deployment
from tests.infrastructure.cloud.iam import Call, Role, allowed
from tests.infrastructure.cloud.recording import Request
from tests.infrastructure.cloud.requests import calls_of
from tests.infrastructure.configurations import KEYS


def refused_of(
    deployment: Deployment, requests: Iterable[Request], others: Mapping[str, Role] | None = None
) -> tuple[list[str], set[str]]:
    """The calls that IAM does not allow their senders, and who sent any to S3 or DynamoDB.

    Args:
        deployment: the stack, whose functions and machine sent them.
        requests: what was sent.
        others: of whoever else sent something, by access key, the role.
    """
    keys = {**deployment.encryption_keys}
    template = deployment.assembly.template_path.read_text(encoding="utf-8")
    keys |= {bucket: key for bucket, key in KEYS.items() if key in template}
    for name, table in deployment.assembly.resources("AWS::DynamoDB::Table").items():
        if key := table.get("SSESpecification", {}).get("KMSMasterKeyId"):
            keys[deployment.physical_ids[name]] = key
    roles = {
        name: deployment.roles[about["Handler"].split(".")[-2]]
        for name, about in deployment.functions.items()
    }
    workflows = [one for name, one in deployment.roles.items() if name.startswith("WorkflowRole")]
    roles |= {**(others or {}), **dict(zip([engine.STATE_MACHINE], workflows, strict=False))}
    asked: dict[tuple[str, Call], None] = {}
    for request in requests:
        asked |= dict.fromkeys((request.sender, call) for call in calls_of(request, keys))
    answers = allowed((roles[sender], call) for sender, call in asked)
    senders = {one for one, call in asked if call.action.startswith(("s3:", "dynamodb:"))}
    refused = [f"{one}: {call}" for (one, call), may in zip(asked, answers, strict=True) if not may]
    return refused, senders
