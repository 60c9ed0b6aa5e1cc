"""Whether a role may do something, as IAM decides it (@cloud-copilot/iam-simulate)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor_local.definition import ACCOUNT

_PROGRAM = Path(__file__).with_name("simulate.mjs")
_REPOSITORY = Path(__file__).parents[3]
# What KMS gives a key by default: its account's policies decide.
_ROOT = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
_OF_A_KEY = {"Effect": "Allow", "Principal": _ROOT, "Action": "kms:*", "Resource": "*"}
_KEY_POLICY = {"Version": "2012-10-17", "Statement": [_OF_A_KEY]}


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a permission.

    Attributes:
        action: as IAM writes it, ``s3:GetObject``.
        resource: an ARN, or ``*`` for actions without a resource.
        context: condition keys and their values.
    """

    action: str
    resource: str
    context: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        conditions = " ".join(f"{key}={value!r}" for key, value in self.context)
        return f"{self.action} on {self.resource} {conditions}".rstrip()


@dataclass(frozen=True)
class Role:
    """What applies to one role.

    Attributes:
        arn: its ARN.
        identity: its own policies, by their names.
        resources: policies of buckets and queues, by the ARNs of these.
    """

    arn: str
    identity: Mapping[str, Mapping[str, Any]]
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def statements(self) -> list[Mapping[str, Any]]:
        """The statements of its own policies."""
        return [one for document in self.identity.values() for one in document["Statement"]]

    def asked(self, call: Call) -> dict[str, Any]:
        """A simulation of one call."""
        bucket = call.resource.partition("/")[0]
        policy = self.resources.get(bucket)
        if call.action.startswith("kms:"):
            policy = _KEY_POLICY
        usual = {"aws:ResourceAccount": ACCOUNT, "aws:SecureTransport": "true"}
        if call.action.startswith("s3:"):
            usual["s3:TlsVersion"] = "1.3"
        found: dict[str, Any] = {
            "request": {
                "principal": self.arn,
                "action": call.action,
                "resource": {"resource": call.resource, "accountId": ACCOUNT},
                "contextVariables": {**usual, **dict(call.context)},
            },
            "identityPolicies": [
                {"name": name, "policy": document} for name, document in self.identity.items()
            ],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
        }
        return found if policy is None else {**found, "resourcePolicy": policy}


def allowed(questions: Iterable[tuple[Role, Call]]) -> list[bool]:
    """Whether IAM allows each of these.

    Raises:
        ValueError: a policy or a call is not one that IAM knows, such as an action on a resource
            that it does not take.
    """
    asked = [(role, call) for role, call in questions]
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("node")), str(_PROGRAM)],
        input="".join(json.dumps(role.asked(call)) + "\n" for role, call in asked),
        capture_output=True,
        text=True,
        check=False,
        cwd=_REPOSITORY,
    )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    if ended.returncode or len(answers) != len(asked):
        raise ValueError(ended.stderr)
    for (role, call), answer in zip(asked, answers, strict=True):
        if not isinstance(answer, str):
            raise ValueError(f"{role.arn}: {call}: {answer}")
    return [answer == "Allowed" for answer in answers]


def refused(role: Role, calls: Iterable[Call]) -> list[str]:
    """The calls that IAM does not allow a role, one line each."""
    asked = [*calls]
    answers = allowed((role, call) for call in asked)
    return sorted(str(call) for call, may in zip(asked, answers, strict=True) if not may)


def who_may(roles: Mapping[str, Role], call: Call) -> set[str]:
    """The names of the roles that may do something."""
    answers = allowed((role, call) for role in roles.values())
    return {name for name, may in zip(roles, answers, strict=True) if may}
