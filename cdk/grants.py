"""IAM statements for roles, with the reason for each wildcard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.checks import acknowledge_wildcard
from cdk.registry import Registry
from cdk.storage import Place
from compactor.planning.surroundings import places_above

_UNKNOWN_KEYS = "Which keys there will be is known when a run lists them; the prefix bounds them."
Role = iam.Role | iam.Policy | iam.ManagedPolicy


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


#: Bounds a statement to this account: who takes the name of a deleted bucket gets no requests.
IN_THIS_ACCOUNT: Mapping[str, Any] = {"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}}


def conditions_at(place: Place, given: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
    """Return the conditions of a statement about a place.

    Args:
        place: the place.
        given: conditions besides, by operator.
    """
    if not place.is_ours:
        return given
    equal = {**(given or {}).get("StringEquals", {}), **IN_THIS_ACCOUNT["StringEquals"]}
    return {**(given or {}), "StringEquals": equal}


def may_list(role: Role, place: Place) -> None:
    """Allow listing a prefix. S3 also needs this to answer 404, not 403, for a missing key."""
    allow(
        role,
        ["s3:ListBucket"],
        [place.bucket.bucket_arn],
        conditions=conditions_at(place, {"StringLike": {"s3:prefix": [f"{place.prefix}*"]}}),
    )


def may_see_owners(role: Role, place: Place) -> None:
    """Allow listing the levels above a prefix, one level each, to find a table that owns it."""
    above = places_above(place.prefix)
    if above:
        levels = {"StringEquals": {"s3:prefix": above, "s3:delimiter": "/"}}
        conditions = conditions_at(place, levels)
        allow(role, ["s3:ListBucket"], [place.bucket.bucket_arn], conditions=conditions)


def may_read(role: Role, place: Place) -> None:
    """Allow listing a prefix and reading its objects."""
    may_list(role, place)
    _may_use(role, ["s3:GetObject"], place)
    _may_use_key(role, place, ["kms:Decrypt"])


def may_look_for(role: Role, place: Place, keys: Sequence[str]) -> None:
    """Allow checking whether objects exist in a place's bucket; missing ones may still be 403."""
    if keys:
        allow(
            role,
            ["s3:ListBucket"],
            [place.bucket.bucket_arn],
            conditions=conditions_at(place, {"StringEquals": {"s3:prefix": list(keys)}}),
        )
        objects = [place.bucket.arn_for_objects(key) for key in keys]
        allow(role, ["s3:GetObject"], objects, conditions=conditions_at(place))
        # S3 returns the checksum of an encrypted object only with its key.
        _may_use_key(role, place, ["kms:Decrypt"])


def may_write(role: Role, place: Place, below: str = "*") -> None:
    """Allow writing objects, also in parts, and aborting uploads, but not deleting objects."""
    _may_use(role, ["s3:PutObject", "s3:AbortMultipartUpload"], place, below)
    # Decrypt is needed because S3 reads the parts of an upload again to assemble them.
    _may_use_key(role, place, ["kms:GenerateDataKey", "kms:Decrypt"])


def may_put(role: Role, place: Place, below: str) -> None:
    """Allow writing objects by single requests, without deleting anything."""
    _may_use(role, ["s3:PutObject"], place, below)
    _may_use_key(role, place, ["kms:GenerateDataKey"])


def may_list_uploads(role: Role, place: Place) -> None:
    """Allow listing the unfinished uploads of the place's whole bucket.

    The action does not support ``s3:prefix``, so it cannot be limited to the place. It returns keys
    and upload ids, no content; the right to abort is limited to the place.
    """
    buckets = [place.bucket.bucket_arn]
    allow(role, ["s3:ListBucketMultipartUploads"], buckets, conditions=conditions_at(place))


def may_list_parts(role: Role, place: Place) -> None:
    """Allow listing the parts of unfinished uploads."""
    _may_use(role, ["s3:ListMultipartUploadParts"], place)


def may_abort_uploads(role: Role, place: Place) -> None:
    """Allow aborting unfinished uploads, which deletes nothing that can be read."""
    _may_use(role, ["s3:AbortMultipartUpload"], place)


def may_delete(role: Role, place: Place, below: str = "*") -> None:
    """Allow deleting objects; S3 requires GetObject if the request has an ETag."""
    _may_use(role, ["s3:DeleteObject", "s3:GetObject"], place, below)


def _may_use(role: Role, actions: Sequence[str], place: Place, below: str = "*") -> None:
    allow(
        role,
        actions,
        [place.objects(below)],
        conditions=conditions_at(place),
        wildcard=_UNKNOWN_KEYS,
    )


def may_ask_registry(role: Role, registry: Registry | None) -> None:
    """Allow reading pending objects from the registry, if there is one."""
    if registry is not None:
        arn = registry.table.table_arn
        allow(role, ["dynamodb:Query"], [arn, registry.index_arn])
        allow(role, ["dynamodb:GetItem"], [arn])
        if registry.key is not None:
            allow(role, ["kms:Decrypt"], [registry.key.key_arn])


def may_register(role: Role, registry: Registry | None) -> None:
    """Allow registering objects, and marking those that were withdrawn."""
    may_ask_registry(role, registry)
    _may_change(
        role, registry, ["dynamodb:PartiQLInsert", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    )


def may_note_discovery(role: Role, registry: Registry | None) -> None:
    """Allow recording how far a run has read the registry."""
    may_ask_registry(role, registry)
    _may_change(role, registry, ["dynamodb:PutItem"])


def may_mark(role: Role, registry: Registry | None) -> None:
    """Allow marking objects as compacted."""
    may_ask_registry(role, registry)
    _may_change(role, registry, ["dynamodb:UpdateItem"])


def _may_change(role: Role, registry: Registry | None, actions: Sequence[str]) -> None:
    if registry is not None:
        allow(role, actions, [registry.table.table_arn])


def _may_use_key(role: Role, place: Place, actions: Sequence[str]) -> None:
    if place.key is not None:
        allow(role, actions, [place.key.key_arn])


def own_role(
    scope: Construct, name: str, service: str, *, of_this_account: bool = False
) -> iam.Role:
    """Return a new role for one service, without any rights.

    Args:
        scope: the construct that it belongs to.
        name: its id.
        service: the service that assumes the role.
        of_this_account: only allow it for resources of this account; not every service sends
            ``aws:SourceAccount``.
    """
    account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    principal = iam.ServicePrincipal(service, conditions=account if of_this_account else None)
    return iam.Role(scope, name, assumed_by=principal)
