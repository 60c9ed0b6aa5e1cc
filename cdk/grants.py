"""IAM statements for roles, each wildcard with its reason, and findings of cdk-nag accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from cdk.storage import Place
from compactor.planning.surroundings import places_above
from compactor.settings.layout import PARTITIONS, TABLE

Role = iam.Role | iam.Policy | iam.ManagedPolicy
_UNKNOWN_KEYS = "Which keys there will be is known when a run lists them; the prefix bounds them."
#: Bounds a statement to this account: who takes the name of a deleted bucket gets no requests.
IN_THIS_ACCOUNT: Mapping[str, Any] = {"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}}
#: Objects of the state that clean-up may delete. A commit's name ends in its number and .json.gz,
#: so this pattern matches no commit, whatever a partition is called.
CHECKPOINTS = "partitions/*commits/*.checkpoint.json.gz"


def own_role(scope: Construct, name: str, service: str) -> iam.Role:
    """Return a role for one service and, where the service says whose it is, of this account.

    Lambda sends no ``aws:SourceAccount`` when it takes the role of a function.
    """
    account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    conditions = None if service.startswith("lambda.") else account
    principal = iam.ServicePrincipal(service, conditions=conditions)
    return iam.Role(scope, name, assumed_by=principal)


def allow(
    role: Role,
    actions: Sequence[str],
    resources: Sequence[str],
    *,
    conditions: Mapping[str, Any] | None = None,
    wildcard: str | None = None,
) -> None:
    """Add one statement.

    Args:
        role: a role, or a separate policy.
        actions: names of actions, without wildcards.
        resources: ARNs.
        conditions: conditions in the form of a policy document.
        wildcard: why resources have a wildcard; without a reason cdk-nag rejects it.
    """
    statement = iam.PolicyStatement(
        actions=list(actions), resources=list(resources), conditions=conditions
    )
    if isinstance(role, iam.Role):
        role.add_to_policy(statement)
    else:
        role.add_statements(statement)
    if wildcard is not None:
        for resource in resources:
            acknowledge_wildcard(role, resource, wildcard)


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding, such as ``AwsSolutions-S1``, on a construct and its children."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))


def acknowledge_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Accept a resource with a wildcard in the policies of a construct."""
    name = _as_found(cdk.Stack.of(construct).resolve(resource))
    acknowledge(construct, f"AwsSolutions-IAM5[Resource::{name}]", reason)


def _as_found(value: Any) -> str:
    # cdk-nag writes tokens of CloudFormation as <LogicalId> and <LogicalId.Attribute>.
    if not isinstance(value, Mapping):
        return str(value)
    if "Ref" in value:
        return f"<{value['Ref']}>"
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    separator, parts = value["Fn::Join"]
    return str(separator).join(_as_found(part) for part in parts)


def _at(place: Place, conditions: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
    """Return the conditions of a statement about a place, which may be of this account only."""
    if not place.is_ours:
        return conditions
    equal = {**(conditions or {}).get("StringEquals", {}), **IN_THIS_ACCOUNT["StringEquals"]}
    return {**(conditions or {}), "StringEquals": equal}


def _may(role: Role, actions: Sequence[str], place: Place, *below: str) -> None:
    """Allow actions on the objects of a place that match patterns."""
    resources = [place.objects(one) for one in below or ("*",)]
    allow(role, actions, resources, conditions=_at(place), wildcard=_UNKNOWN_KEYS)


def _may_use_key(role: Role, place: Place, *actions: str) -> None:
    if place.key is not None:
        allow(role, [f"kms:{one}" for one in actions], [place.key.key_arn])


def may_list(role: Role, place: Place, below: str = "*") -> None:
    """Allow listing a prefix. S3 also needs this to answer 404, not 403, for a missing key."""
    prefix = {"StringLike": {"s3:prefix": [f"{place.prefix}{below}"]}}
    allow(role, ["s3:ListBucket"], [place.bucket.bucket_arn], conditions=_at(place, prefix))


def may_see_owners(role: Role, place: Place) -> None:
    """Allow listing the levels above a prefix, one level each, to find a table that owns it."""
    if above := places_above(place.prefix):
        levels = _at(place, {"StringEquals": {"s3:prefix": above, "s3:delimiter": "/"}})
        allow(role, ["s3:ListBucket"], [place.bucket.bucket_arn], conditions=levels)


def may_read(role: Role, place: Place) -> None:
    """Allow listing a prefix and reading its objects."""
    may_list(role, place)
    _may(role, ["s3:GetObject"], place)
    _may_use_key(role, place, "Decrypt")


def may_look_for(role: Role, place: Place, keys: Sequence[str]) -> None:
    """Allow checking whether objects exist in a place's bucket; missing ones may still be 403."""
    if keys:
        named = _at(place, {"StringEquals": {"s3:prefix": list(keys)}})
        allow(role, ["s3:ListBucket"], [place.bucket.bucket_arn], conditions=named)
        objects = [place.bucket.arn_for_objects(key) for key in keys]
        allow(role, ["s3:GetObject"], objects, conditions=_at(place))
        # S3 returns the checksum of an encrypted object only with its key.
        _may_use_key(role, place, "Decrypt")


def may_write(role: Role, place: Place, *below: str) -> None:
    """Allow writing objects, also in parts, and aborting uploads, but not deleting objects."""
    _may(role, ["s3:PutObject", "s3:AbortMultipartUpload"], place, *below)
    # Decrypt is needed because S3 reads the parts of an upload again to assemble them.
    _may_use_key(role, place, "GenerateDataKey", "Decrypt")


def may_put(role: Role, place: Place, *below: str) -> None:
    """Allow writing objects by single requests, without deleting anything."""
    _may(role, ["s3:PutObject"], place, *below)
    _may_use_key(role, place, "GenerateDataKey")


def may_list_uploads(role: Role, place: Place) -> None:
    """Allow listing the unfinished uploads of the place's whole bucket.

    The action does not support ``s3:prefix``, so it cannot be limited to the place. It returns keys
    and upload ids, no content; the right to abort is limited to the place.
    """
    buckets = [place.bucket.bucket_arn]
    allow(role, ["s3:ListBucketMultipartUploads"], buckets, conditions=_at(place))


def may_abort_uploads(role: Role, place: Place) -> None:
    """Allow aborting unfinished uploads, which deletes nothing that can be read."""
    _may(role, ["s3:AbortMultipartUpload"], place)


def may_delete(role: Role, place: Place, *below: str) -> None:
    """Allow deleting objects; S3 requires GetObject if the request has an ETag."""
    _may(role, ["s3:DeleteObject", "s3:GetObject"], place, *below)


def may_use_results(policy: Role, place: Place, results: str) -> None:
    """Allow Step Functions to write and read the results of a Map Run, and to resume an upload."""
    actions = ["PutObject", "GetObject", "ListMultipartUploadParts", "AbortMultipartUpload"]
    _may(policy, [f"s3:{one}" for one in actions], place, results)
    _may_use_key(policy, place, "GenerateDataKey", "Decrypt")


def may_read_objects(policy: Role, place: Place, *below: str) -> None:
    """Allow reading objects by name, without listing any."""
    _may(policy, ["s3:GetObject"], place, *below)


def may_pass(role: Role, passed: iam.Role, service: str) -> None:
    """Allow giving a role to one service."""
    to = {"StringLike": {"iam:PassedToService": service}}
    allow(role, ["iam:PassRole"], [passed.role_arn], conditions=to)


def must_keep_logs(scope: Construct, state: Place) -> None:
    """Deny all roles of a stack, after they are made, deleting entries of the logs in a state.

    A bucket of the stack denies it as well, so that no policy can be added that allows it.
    """
    # Not the checkpoints of the commit log, whose names are longer.
    logs = [state.objects(f"{PARTITIONS}*commits/{'?' * 20}.json.gz"), state.objects(f"{TABLE}*")]
    actions = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    roles = [one for one in scope.node.find_all() if isinstance(one, iam.Role)]
    if isinstance(state.bucket, s3.Bucket):
        state.bucket.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                principals=[iam.ArnPrincipal(role.role_arn) for role in roles],
                actions=actions,
                resources=logs,
            )
        )
        return
    statement = iam.PolicyStatement(effect=iam.Effect.DENY, actions=actions, resources=logs)
    for role in roles:
        role.add_to_policy(statement)
