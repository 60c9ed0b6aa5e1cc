"""Whether policies allow a call, as IAM decides it: a Deny wins, and without an Allow it is no.

Whatever this evaluator does not know (a condition operator, a policy variable, NotAction) is an
error and no answer, so that no check passes for want of understanding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from compactor_local.definition import ACCOUNT

Document = Mapping[str, Any]


class NotEvaluated(Exception):
    """A policy says something that this evaluator does not know."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a permission.

    Attributes:
        action: as IAM writes it, ``s3:GetObject``.
        resource: an ARN, or ``*`` for actions without a resource.
        context: condition keys and their values; a key that is absent is absent for IAM too, but
            for aws:ResourceAccount, which IAM always knows: by default the deployment's.
    """

    action: str
    resource: str
    context: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        conditions = " ".join(f"{key}={value!r}" for key, value in self.context)
        return f"{self.action} on {self.resource} {conditions}".rstrip()


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy.

    Attributes:
        source: the policy it stands in, and its place there.
        allows: False for a Deny.
        actions: patterns.
        resources: patterns.
        principals: ARNs and services, for policies of resources; empty otherwise.
        conditions: operator, key and accepted values; all must hold.
    """

    source: str
    allows: bool
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    principals: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def covers(self, call: Call) -> bool:
        """True when the statement is about this call."""
        ours = {"aws:ResourceAccount": ACCOUNT}
        context = {key.lower(): value for key, value in {**ours, **dict(call.context)}.items()}
        return (
            any(_matches(pattern.lower(), call.action.lower()) for pattern in self.actions)
            and any(_matches(pattern, call.resource) for pattern in self.resources)
            and all(_holds(*condition, context) for condition in self.conditions)
        )


@dataclass(frozen=True, slots=True)
class Policies:
    """What applies to one role.

    Attributes:
        role: its ARN.
        identity: statements of its own policies.
        resource: statements of the policies of buckets, keys and the like.
    """

    role: str
    identity: tuple[Statement, ...]
    resource: tuple[Statement, ...] = ()

    def allow(self, call: Call) -> bool:
        """True when the role may do this."""
        about = [one for one in self.resource if one.principals and one.covers(call)]
        ours = [one for one in about if {self.role, "*"} & {*one.principals}]
        own = [one for one in self.identity if one.covers(call)]
        if not all(one.allows for one in (*ours, *own)):
            return False
        if call.action.startswith("kms:") and not ours:
            # A key leaves the decision to the policies of roles only where its own policy says so.
            account = self.role.split(":")[4]
            root = f"arn:aws:iam::{account}:root"
            return bool(own) and any(root in one.principals and one.allows for one in about)
        return bool(own or ours)

    def with_others(self, others: Iterable[Statement]) -> Policies:
        """The same with more statements of policies of resources."""
        return Policies(self.role, self.identity, (*self.resource, *others))

    def without(self, left_out: Statement) -> Policies:
        """The same, but for one statement of the role."""
        kept = tuple(one for one in self.identity if one is not left_out)
        return Policies(self.role, kept, self.resource)


def statements(document: Document, source: str) -> Iterator[Statement]:
    """The statements of a policy document.

    Raises:
        NotEvaluated: it has an element that is not known here.
    """
    for place, given in enumerate(_listed(document["Statement"])):
        unknown = given.keys() - _ELEMENTS
        if unknown:
            raise NotEvaluated(f"{source}[{place}]: {', '.join(sorted(unknown))}")
        yield Statement(
            source=f"{source}[{given.get('Sid') or place}]",
            allows=given["Effect"] == "Allow",
            actions=tuple(_listed(given["Action"])),
            resources=tuple(_listed(given.get("Resource", "*"))),
            principals=tuple(_principals(given.get("Principal", ()))),
            conditions=tuple(_conditions(given.get("Condition", {}))),
        )


_ELEMENTS = {"Sid", "Effect", "Action", "Resource", "Principal", "Condition"}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _principals(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif given:
        for names in given.values():
            yield from _listed(names)


def _conditions(given: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for operator, keys in given.items():
        if operator.removesuffix("IfExists") not in _OPERATORS:
            raise NotEvaluated(f"condition operator {operator}")
        for key, values in keys.items():
            texts = (str(value) for value in _listed(values))
            yield operator, key, tuple(text.lower() if _is_flag(text) else text for text in texts)


def _is_flag(text: str) -> bool:
    return text in {"True", "False"}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    if "${" in pattern:
        raise NotEvaluated(f"policy variable in {pattern}")
    parts = (
        {"*": ".*", "?": "."}.get(part, re.escape(part)) for part in re.split(r"([*?])", pattern)
    )
    return re.compile("".join(parts), re.DOTALL)


def _matches(pattern: str, text: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def _any(compare: Callable[[str, str], bool]) -> Callable[[str | None, Iterable[str]], bool]:
    return lambda value, accepted: (
        value is not None and any(compare(one, value) for one in accepted)
    )


def _none(compare: Callable[[str, str], bool]) -> Callable[[str | None, Iterable[str]], bool]:
    return lambda value, accepted: value is None or not any(compare(one, value) for one in accepted)


def _equal(one: str, other: str) -> bool:
    return one == other


_OPERATORS: Mapping[str, Callable[[str | None, Iterable[str]], bool]] = {
    "StringEquals": _any(_equal),
    "StringLike": _any(_matches),
    "StringNotEquals": _none(_equal),
    "StringNotLike": _none(_matches),
    "ArnEquals": _any(_matches),
    "ArnLike": _any(_matches),
    "Bool": _any(_equal),
    "NumericLessThan": _any(lambda limit, value: float(value) < float(limit)),
    "Null": lambda value, accepted: str(value is None).lower() in accepted,
}


def _holds(operator: str, key: str, accepted: tuple[str, ...], context: Mapping[str, str]) -> bool:
    value = context.get(key.lower())
    if operator.endswith("IfExists") and value is None:
        return True
    return _OPERATORS[operator.removesuffix("IfExists")](value, accepted)
