"""A state that Step Functions cannot use is refused before anything is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compactor.aws.state_bucket import require_state_nearby
from compactor.errors import InvalidInput
from compactor.invocation import kept_store
from compactor.settings.uris import S3Uri
from compactor_handlers import discover
from compactor_tables.handlers import list_tables
from tests.support.s3_requests import store_on
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

STATE = S3Uri("lake", "_compactor/")
HERE, OURS = "eu-central-1", "123456789012"
EMPTY = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"


def owned_by(account: str, region: str = HERE, *, may_list: bool = True) -> Any:
    """S3's answers for a bucket."""
    headers = {"x-amz-bucket-region": region} if region else {}

    def answer(asked: Asked) -> Answer:
        expected = asked.headers.get("x-amz-expected-bucket-owner", account)
        if expected != account or not may_list:
            denied = refusal(403, "AccessDenied", "Access Denied")
            return Answer(denied.status, denied.body, {**denied.headers, **headers})
        return Answer(body=EMPTY, headers=headers)

    return answer


def check(s3: ScriptedS3) -> None:
    require_state_nearby(STATE, store_on(s3.url).client, HERE, OURS)


@pytest.mark.parametrize(
    "answer",
    [
        owned_by(OURS),
        # S3 does not say, or the role may not list: other requests show what is wrong.
        owned_by(OURS, ""),
        owned_by("999999999999", may_list=False),
        lambda asked: refusal(404, "NoSuchBucket"),
        lambda asked: Answer(0),
    ],
)
def test_a_state_that_is_not_surely_elsewhere_is_accepted(s3: ScriptedS3, answer: Any) -> None:
    s3.answer = answer
    check(s3)
    assert 1 <= len(s3.asked) <= 2
    assert "prefix=_compactor%2F" in s3.asked[0].path


@pytest.mark.parametrize("may_list", [True, False])
def test_a_state_in_another_region_is_refused_by_field(s3: ScriptedS3, *, may_list: bool) -> None:
    s3.answer = owned_by(OURS, "us-east-1", may_list=may_list)
    with pytest.raises(InvalidInput, match=r"s3_state_uri: .*region.*this one is in us-east-1"):
        check(s3)


def test_a_state_in_another_account_is_refused_by_field(s3: ScriptedS3) -> None:
    s3.answer = owned_by("999999999999")
    with pytest.raises(InvalidInput, match=f"s3_state_uri: .*account {OURS}"):
        check(s3)


CONTEXT = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=512,
    aws_request_id="r",
    invoked_function_arn=f"arn:aws:lambda:{HERE}:{OURS}:function:f",
    get_remaining_time_in_millis=lambda: 900_000,
)
RUN = {"s3_source_uri": "s3://raw/", "s3_destination_uri": "s3://lake/c/", "spark_engine": "none"}
EVENTS: list[tuple[Any, Any]] = [
    (discover.handler, {"input": RUN, "run_id": "r", "started_at": "2026-01-03T00:00:00Z"}),
    (
        list_tables.handler,
        {"run_id": "r", "tables": ["delta:s3://lake/t/"], "s3_state_uri": "s3://lake/m/"},
    ),
]


@pytest.mark.parametrize(("handler", "event"), EVENTS)
def test_only_functions_of_a_state_machine_refuse_it_and_write_nothing(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch, handler: Any, event: Any
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
    monkeypatch.setenv("AWS_REGION", HERE)
    s3.answer = owned_by(OURS, "us-east-1")
    kept_store.cache_clear()
    try:
        with monkeypatch.context() as deployed:
            deployed.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
            with pytest.raises(InvalidInput, match="s3_state_uri"):
                handler(event, CONTEXT)
        assert {one.method for one in s3.asked} == {"GET"}
        # `compactor run` needs no state machine.
        s3.always(refusal(404, "NoSuchBucket"))
        s3.asked.clear()
        with pytest.raises(InvalidInput, match="there is no bucket"):
            handler(event, CONTEXT)
        assert not [one for one in s3.asked if "x-amz-expected-bucket-owner" in one.headers]
    finally:
        kept_store.cache_clear()
