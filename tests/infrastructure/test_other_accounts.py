"""The policies that docs/deployment.md has for a source in another account."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk.config import Config
from compactor_local.definition import ACCOUNT
from tests.infrastructure.cloud.deployment import Deployment
from tests.infrastructure.cloud.iam import Call, Policies, Statement, statements
from tests.infrastructure.configurations import EVERY, KMS_KEYS
from tests.infrastructure.conftest import Deployed

_NAME = "KMS, clean-up, imported buckets"
_BUCKET = "arn:aws:s3:::app-logs"


@pytest.fixture
def policies(repo_root: Path) -> list[Mapping[str, Any]]:
    """Those of the bucket and of its key."""
    text = (repo_root / "docs" / "deployment.md").read_text("utf-8")
    section = text.partition("## A source in another account\n")[2].partition("\n## ")[0]
    return [json.loads(one) for one in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]


def granted(document: Mapping[str, Any], call: Call, role: str, *more: str) -> bool:
    """Whether the other account lets a role of ours do this, whose own policy must allow it too."""
    (given,) = document["Statement"]
    (account,) = given["Principal"].values()
    assert account == f"arn:aws:iam::{role.split(':')[4]}:root"
    actions = [given["Action"]] if isinstance(given["Action"], str) else given["Action"]
    opened = {"Statement": {**given, "Action": [*actions, *more], "Principal": "*"}}
    (statement,) = statements(opened, "the other account's")
    by = Call(call.action, call.resource, (*call.context, ("aws:PrincipalArn", role)))
    return statement.allows and statement.covers(by)


def about(found: Deployment, *resources: str) -> Iterator[tuple[str, Call, Statement]]:
    """What the policies of our roles allow with these resources."""
    for one in found.policies.values():
        assert isinstance(one, Policies)
        for statement in one.identity:
            for resource in statement.resources:
                if resource.startswith(resources) and statement.allows:
                    for action in statement.actions:
                        yield one.role, Call(action, resource.replace("*", "x")), statement


def test_the_bucket_policy_grants_what_our_roles_may_do_with_the_source(
    deployed: Deployed, policies: list[Mapping[str, Any]]
) -> None:
    bucket, _ = policies
    needed = list(about(deployed(_NAME), _BUCKET))
    assert {call.action for _, call, _ in needed} == {
        *("s3:ListBucket", "s3:GetObject", "s3:DeleteObject")
    }
    for role, call, _ in needed:
        assert granted(bucket, call, role, "s3:DeleteObject"), call
        assert granted(bucket, call, role) == (call.action != "s3:DeleteObject"), call
        stranger = role.replace("role/", "role/someone-")
        assert not granted(bucket, call, stranger)


def test_the_key_policy_grants_what_our_roles_may_do_with_the_key_of_the_source(
    deployed: Deployed, policies: list[Mapping[str, Any]]
) -> None:
    _, key = policies
    needed = list(about(deployed(_NAME), KMS_KEYS["app-logs"]))
    assert needed
    for role, call, _ in needed:
        assert granted(key, call, role), call
        assert not granted(key, call, role.replace("role/", "role/someone-"))


def test_a_key_of_another_account_is_accepted() -> None:
    arn = "arn:aws:kms:us-east-1:999999999999:key/11111111-2222-3333-4444-555555555555"
    context = {
        "s3_source_uri": "s3://app-logs/raw/",
        "s3_destination_uri": "s3://lake/compacted/",
        "kms_keys": {"source": arn},
    }
    assert Config.from_context(context).kms_keys == {"source": arn}


def test_made_buckets_and_the_state_are_used_in_our_account_only(
    every_configuration: str, deployed: Deployed
) -> None:
    found = deployed(every_configuration)
    standalone = EVERY[every_configuration].get("mode") == "standalone"
    made = {found.physical_ids[one] for one in found.assembly.resources("AWS::S3::Bucket")}
    places = [f"arn:aws:s3:::{bucket}" for bucket in sorted(made)]
    if not standalone:
        places.append(f"arn:aws:s3:::{found.outputs['StateUri'].removeprefix('s3://')}")
    elsewhere = (("aws:ResourceAccount", "999999999999"),)
    checked = 0
    for role, policies in (*found.policies.items(), *found.managed_policies.items()):
        for statement in policies.identity:
            # The region of a bucket is no secret, and Athena asks for it.
            actions = {*statement.actions} - {"s3:GetBucketLocation"}
            if not any(one.startswith("s3:") for one in actions):
                continue
            for resource in statement.resources:
                if not resource.startswith(tuple(places)):
                    continue
                call = Call(statement.actions[0], resource.replace("*", "x"), elsewhere)
                assert ("StringEquals", "aws:ResourceAccount", (ACCOUNT,)) in statement.conditions
                assert not statement.covers(call), (role, statement)
                checked += 1
    assert checked or not places
