"""What a role may do: statements, each with the reason for its wildcards beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk.checks import acknowledge_wildcard
from cdk.registry import Registry
from cdk.storage import Place
from compactor.planning.surroundings import places_above
from compactor.settings.tables import TableAddress

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
        role: a role, or a policy of its own.
        actions: without wildcards.
        resources: ARNs.
        conditions: as a policy has them.
        wildcard: why a resource has a wildcard; cdk-nag refuses it without.
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


def may_list(role: Role, place: Place) -> None:
    """List a prefix. S3 also asks for this before it says that a key is missing (404, not 403)."""
    allow(
        role,
        ["s3:ListBucket"],
        [place.bucket.bucket_arn],
        conditions={"StringLike": {"s3:prefix": [f"{place.prefix}*"]}},
    )


def may_see_owners(role: Role, place: Place) -> None:
    """List the levels above a prefix, without what lies below them: a table there owns it."""
    above = places_above(place.prefix)
    if above:
        allow(
            role,
            ["s3:ListBucket"],
            [place.bucket.bucket_arn],
            conditions={"StringEquals": {"s3:prefix": above, "s3:delimiter": "/"}},
        )


def may_read(role: Role, place: Place) -> None:
    """List a prefix and read its objects."""
    may_list(role, place)
    allow(role, ["s3:GetObject"], [place.objects()], wildcard=_UNKNOWN_KEYS)
    _may_use_key(role, place, ["kms:Decrypt"])


def may_read_tags(role: Role, place: Place) -> None:
    """Read the tags of objects."""
    allow(role, ["s3:GetObjectTagging"], [place.objects()], wildcard=_UNKNOWN_KEYS)


def may_read_inventory_table(role: Role, table: TableAddress, key: kms.IKey | None) -> None:
    """Read one table of S3 Tables: where its metadata lies, and its files as objects.

    Two of the three rights of the Amazon S3 User Guide's "Permissions for querying metadata
    tables": GetTable is not called. Both know these conditions (Service Authorization Reference).

    Args:
        role: whose.
        table: in a table bucket.
        key: that encrypts it; None for that of S3.
    """
    allow(
        role,
        ["s3tables:GetTableMetadataLocation", "s3tables:GetTableData"],
        [f"{table.uri}/table/*"],
        conditions={
            "StringEquals": {
                "s3tables:namespace": ".".join(table.name[:-1]),
                "s3tables:tableName": table.name[-1],
            }
        },
        wildcard="A table's ARN has an id that S3 draws; the conditions name the one table.",
    )
    if key is not None:
        allow(role, ["kms:Decrypt"], [key.key_arn])


def may_look_for(role: Role, place: Place, keys: Sequence[str]) -> None:
    """Ask whether these objects are in a place's bucket; S3 may answer 403 for one that is not."""
    if keys:
        allow(
            role,
            ["s3:ListBucket"],
            [place.bucket.bucket_arn],
            conditions={"StringEquals": {"s3:prefix": list(keys)}},
        )
        allow(role, ["s3:GetObject"], [place.bucket.arn_for_objects(key) for key in keys])
        # The checksum of an encrypted one is not returned without its key.
        _may_use_key(role, place, ["kms:Decrypt"])


def may_write(role: Role, place: Place, below: str = "*") -> None:
    """Write objects, in parts too, and drop unfinished uploads; nothing can be deleted by this."""
    allow(
        role,
        ["s3:PutObject", "s3:AbortMultipartUpload"],
        [place.objects(below)],
        wildcard=_UNKNOWN_KEYS,
    )
    # Decrypt too: S3 reads the parts of an upload again to put them together.
    _may_use_key(role, place, ["kms:GenerateDataKey", "kms:Decrypt"])


def may_put(role: Role, place: Place, below: str) -> None:
    """Write objects, each by one request; nothing can be deleted by this."""
    allow(role, ["s3:PutObject"], [place.objects(below)], wildcard=_UNKNOWN_KEYS)
    _may_use_key(role, place, ["kms:GenerateDataKey"])


def may_list_uploads(role: Role, place: Place) -> None:
    """List the unfinished uploads of the place's whole bucket.

    The action knows no ``s3:prefix``, so that no condition can bound it. It returns keys and upload
    ids, no content; aborting one is bounded by the place.
    """
    allow(role, ["s3:ListBucketMultipartUploads"], [place.bucket.bucket_arn])


def may_abort_uploads(role: Role, place: Place) -> None:
    """Drop unfinished uploads; nothing that anybody can read is deleted by this."""
    allow(role, ["s3:AbortMultipartUpload"], [place.objects()], wildcard=_UNKNOWN_KEYS)


def may_delete(role: Role, place: Place, below: str = "*") -> None:
    """Delete objects; S3 asks for GetObject where the request names an ETag."""
    allow(role, ["s3:DeleteObject", "s3:GetObject"], [place.objects(below)], wildcard=_UNKNOWN_KEYS)


def may_ask_registry(role: Role, registry: Registry | None) -> None:
    """See which objects wait; nothing where there is no registry."""
    if registry is not None:
        arn = registry.table.table_arn
        allow(role, ["dynamodb:Query"], [arn, registry.index_arn])
        allow(role, ["dynamodb:GetItem"], [arn])
        if registry.key is not None:
            allow(role, ["kms:Decrypt"], [registry.key.key_arn])


def may_register(role: Role, registry: Registry | None) -> None:
    """Put objects into the registry, which marks them when they are taken back."""
    may_ask_registry(role, registry)
    _may_change(
        role, registry, ["dynamodb:PartiQLInsert", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    )


def may_note_discovery(role: Role, registry: Registry | None) -> None:
    """Put down how far a run has read."""
    may_ask_registry(role, registry)
    _may_change(role, registry, ["dynamodb:PutItem"])


def may_mark(role: Role, registry: Registry | None) -> None:
    """Mark objects that were compacted."""
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
    """A role for one service, with nothing allowed yet.

    Args:
        scope: the construct it belongs to.
        name: its id.
        service: who takes the role.
        of_this_account: only for what is in this account; not every service says so.
    """
    account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    principal = iam.ServicePrincipal(service, conditions=account if of_this_account else None)
    return iam.Role(scope, name, assumed_by=principal)
