"""The evaluator of policies decides as IAM does, and says so when it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from tests.infrastructure.cloud.iam import Call, NotEvaluated, Policies, statements

_ROLE = "arn:aws:iam::123456789012:role/worker"
_KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
_GET = Call("s3:GetObject", "arn:aws:s3:::lake/raw/a.json", (("aws:SecureTransport", "true"),))


def _allow(action: Any, resource: Any, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def _decides(call: Call, *given: dict[str, Any], resource: tuple[dict[str, Any], ...] = ()) -> bool:
    identity = tuple(statements({"Statement": [*given]}, "own"))
    others = tuple(statements({"Statement": [*resource]}, "other"))
    return Policies(_ROLE, identity, others).allow(call)


@pytest.mark.parametrize(
    ("action", "resource", "allowed"),
    [
        ("s3:GetObject", "arn:aws:s3:::lake/raw/*", True),
        ("s3:getobject", "arn:aws:s3:::lake/raw/*", True),
        ("s3:Get*", "arn:aws:s3:::lake/*", True),
        ("s3:G?tObject", "*", True),
        (["s3:PutObject", "s3:GetObject"], ["arn:aws:s3:::other/*", "arn:aws:s3:::lake/*"], True),
        ("s3:GetObject", "arn:aws:s3:::lake/RAW/*", False),
        ("s3:GetObject", "arn:aws:s3:::lake/raw", False),
        ("s3:GetObjectVersion", "*", False),
        ("s3:PutObject", "*", False),
    ],
)
def test_actions_and_resources_match_by_their_wildcards(
    action: Any, resource: Any, allowed: bool
) -> None:
    assert _decides(_GET, _allow(action, resource)) is allowed


def test_without_any_statement_nothing_is_allowed() -> None:
    assert not _decides(_GET)


def test_a_deny_wins_over_every_allow() -> None:
    deny = {**_allow("s3:*", "*"), "Effect": "Deny"}

    assert not _decides(_GET, _allow("*", "*"), deny)
    assert not _decides(_GET, _allow("*", "*"), resource=({**deny, "Principal": "*"},))


def test_a_deny_whose_condition_does_not_hold_denies_nothing() -> None:
    insecure = {
        **_allow("s3:*", "*", Condition={"Bool": {"aws:SecureTransport": "false"}}),
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
    }

    assert _decides(_GET, _allow("s3:GetObject", "*"), resource=(insecure,))


@pytest.mark.parametrize(
    ("condition", "context", "allowed"),
    [
        ({"StringLike": {"s3:prefix": ["raw/*"]}}, {"s3:prefix": "raw/2026/"}, True),
        ({"StringLike": {"S3:Prefix": "raw/*"}}, {"s3:prefix": "raw/"}, True),
        ({"StringLike": {"s3:prefix": ["raw/*"]}}, {"s3:prefix": "other/"}, False),
        ({"StringLike": {"s3:prefix": ["raw/*"]}}, {}, False),
        ({"StringLikeIfExists": {"s3:prefix": ["raw/*"]}}, {}, True),
        ({"StringEquals": {"s3:prefix": ["", "raw/"]}}, {"s3:prefix": ""}, True),
        ({"StringNotEquals": {"s3:prefix": "raw/"}}, {"s3:prefix": "raw/"}, False),
        ({"StringNotEquals": {"s3:prefix": "raw/"}}, {}, True),
        ({"Null": {"s3:prefix": "true"}}, {}, True),
        ({"Null": {"s3:prefix": True}}, {"s3:prefix": ""}, False),
        ({"Bool": {"aws:SecureTransport": True}}, {"aws:SecureTransport": "true"}, True),
        ({"NumericLessThan": {"s3:TlsVersion": 1.2}}, {"s3:TlsVersion": "1.3"}, False),
        ({"NumericLessThan": {"s3:TlsVersion": "1.2"}}, {"s3:TlsVersion": "1.1"}, True),
        (
            {"StringLike": {"s3:prefix": "raw/*"}, "StringEquals": {"s3:delimiter": "/"}},
            {"s3:prefix": "raw/"},
            False,
        ),
    ],
)
def test_conditions_hold_as_iam_compares_them(
    condition: dict[str, Any], context: dict[str, str], allowed: bool
) -> None:
    call = Call("s3:ListBucket", "arn:aws:s3:::lake", tuple(context.items()))

    assert _decides(call, _allow("s3:ListBucket", "*", Condition=condition)) is allowed


def test_a_bucket_policy_can_allow_what_the_role_itself_may_not() -> None:
    given = _allow("s3:GetObject", "*", Principal={"AWS": _ROLE})
    stranger = _allow("s3:GetObject", "*", Principal={"AWS": _ROLE + "-2"})

    assert _decides(_GET, resource=(given,))
    assert not _decides(_GET, resource=(stranger,))


def test_a_key_must_leave_the_decision_to_the_account_before_a_role_can_use_it() -> None:
    call = Call("kms:Decrypt", _KEY)
    own = _allow("kms:Decrypt", _KEY)
    root = _allow("kms:*", _KEY, Principal={"AWS": "arn:aws:iam::123456789012:root"})

    assert _decides(call, own, resource=(root,))
    assert not _decides(call, own)
    assert not _decides(call, resource=(root,))
    assert _decides(call, resource=(_allow("kms:Decrypt", _KEY, Principal={"AWS": _ROLE}),))


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"},
        _allow("s3:GetObject", "*", Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}),
        _allow("s3:GetObject", "arn:aws:s3:::lake/${aws:username}/*"),
    ],
)
def test_what_is_not_known_is_an_error_and_no_answer(statement: dict[str, Any]) -> None:
    with pytest.raises(NotEvaluated):
        _decides(_GET, statement)


def test_a_statement_can_be_taken_out() -> None:
    get, put = statements(
        {"Statement": [_allow("s3:GetObject", "*"), _allow("s3:PutObject", "*")]}, "own"
    )
    policies = Policies(_ROLE, (get, put))

    assert policies.without(put).allow(_GET)
    assert not policies.without(get).allow(_GET)
