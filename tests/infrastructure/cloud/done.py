"""What a deployed run did, beside what its roles allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compactor_local.definition import REGION
from tests.infrastructure.cloud import engine, expected
from tests.infrastructure.cloud.audit import Audit, uses
from tests.infrastructure.cloud.deployment import Deployment, account_arn
from tests.infrastructure.cloud.iam import Statement
from tests.infrastructure.configurations import CONFIGURATIONS, KMS_KEYS, engine_of, key_of


def audit_of(deployment: Deployment, kind: str, others: Mapping[str, str] | None = None) -> Audit:
    """What functions and state machine did, with what AWS itself does by their roles.

    Args:
        deployment: the stack.
        kind: its configuration.
        others: of whoever else sent something, by access key, the ARN of the role.
    """
    keys = {**deployment.encryption_keys}
    if any(key_of(CONFIGURATIONS[kind], one) for one in ("source", "maintenance")):
        keys |= KMS_KEYS
    for name, table in deployment.assembly.resources("AWS::DynamoDB::Table").items():
        if key := table.get("SSESpecification", {}).get("KMSMasterKeyId"):
            keys[deployment.physical_ids[name]] = key
    asked = deployment.cloud.requests()
    done = {sender: set(calls) for sender, calls in uses(asked, keys).items()}
    roles = {name: one["Role"] for name, one in deployment.functions.items()} | {**(others or {})}
    for name in deployment.functions:
        done.setdefault(name, set()).update(expected.of_a_function(deployment, name))
    way = engine_of(CONFIGURATIONS[kind])
    machines = deployment.table_machines or deployment.machines
    for machine in machines:
        roles[engine.STATE_MACHINE] = machine["roleArn"]
        done.setdefault(engine.STATE_MACHINE, set()).update(
            expected.of_the_workflow(machine, deployment, way)
        )
    return Audit(
        {sender: frozenset(calls) for sender, calls in done.items()},
        {
            sender: deployment.policies[role].with_others(policies_of_keys(keys.values()))
            for sender, role in roles.items()
        },
    )


def policies_of_keys(keys: Iterable[str]) -> Iterator[Statement]:
    """Keys are never the stack's own; theirs is the policy that KMS gives a key by default."""
    root = account_arn("iam", "root").replace(REGION, "")
    for key in keys:
        yield Statement("key policy", True, ("kms:*",), (key,), (root,))
