"""Whose bucket, which region, which rights: what AWS refuses is one line with the remedy in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from compactor_cli.commands import main
from tests.support.scripted_s3 import Answer, ScriptedS3, refusal

SOURCE, DESTINATION = "s3://my-logs/raw/", "s3://my-lake/compacted/"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "plan": (SOURCE, DESTINATION),
    "run": (SOURCE, DESTINATION),
    "verify": (SOURCE, DESTINATION),
    "clean-up": (SOURCE, DESTINATION, "--dry-run"),
    "ls": (DESTINATION,),
    "restore": (DESTINATION, "key"),
}
ELSEWHERE = (
    b"<Error><Code>PermanentRedirect</Code><Message>The bucket you are attempting to access must be"
    b" addressed using the specified endpoint.</Message></Error>"
)
MALFORMED = (
    b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong;"
    b" expecting 'eu-west-1'</Message><Region>eu-west-1</Region></Error>"
)
NOT_ALLOWED = (
    "User: arn:aws:iam::123456789012:user/me is not authorized to perform: s3:ListBucket on"
    " resource: arn:aws:s3:::my-logs"
)


def told(s3: ScriptedS3, capsys: pytest.CaptureFixture[str], name: str) -> str:
    """What a command says, which ends as a wrong input and says nothing else."""
    assert main([name, *COMMANDS[name], "--endpoint-url", s3.url]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    "answer",
    [
        Answer(301, ELSEWHERE, {"x-amz-bucket-region": "eu-west-1"}),
        Answer(400, MALFORMED),
    ],
    ids=["redirected", "signed for another"],
)
def test_a_bucket_in_another_region_is_reported_with_that_region(s3, capsys, name, answer):
    s3.always(answer)
    bucket = "my-logs" if name in ("plan", "run") else "my-lake"
    assert told(s3, capsys, name).endswith(
        f"the bucket {bucket} is in the region eu-west-1: set AWS_REGION to eu-west-1\n"
    )


def test_where_the_answer_names_no_region_the_way_to_find_it_is_reported(s3, capsys):
    s3.always(refusal(400, "IllegalLocationConstraintException"))
    assert "aws s3api get-bucket-location --bucket my-logs shows" in told(s3, capsys, "plan")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bucket_that_does_not_exist_is_named(s3, capsys, name):
    s3.always(refusal(404, "NoSuchBucket"))
    bucket = "my-logs" if name in ("plan", "run") else "my-lake"
    assert f"there is no bucket {bucket}: is its name right" in told(s3, capsys, name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_right_is_reported_with_what_needs_it_and_what_to_do(s3, capsys, name):
    s3.always(refusal(403, "AccessDenied", NOT_ALLOWED))
    line = told(s3, capsys, name)
    assert "not allowed: " in line
    assert "s3:ListBucket" in line
    assert (
        "give that right to the owner of these credentials, or name another profile in AWS_PROFILE"
    ) in line


def test_a_refusal_without_a_reason_is_reported_with_the_right_that_it_takes(s3, capsys):
    s3.always(refusal(403, "AccessDenied", "Access Denied"))
    line = told(s3, capsys, "plan")
    assert f"list {SOURCE}: 403 AccessDenied: Access Denied (s3:ListBucket is needed)" in line
    assert line.startswith(f"compactor: s3_source_uri {SOURCE}: ")


@pytest.mark.parametrize("name", ["plan", "runs show"])
def test_a_profile_that_is_not_there_is_named(capsys, monkeypatch, name):
    monkeypatch.setenv("AWS_PROFILE", "nope")
    assert main([*name.split(), *COMMANDS.get(name, ())]) == 2
    _, err = capsys.readouterr()
    assert err == (
        "compactor: AWS_PROFILE names the profile nope, which does not exist\n"
        "  aws configure list-profiles lists the existing profiles\n"
    )


@pytest.mark.parametrize("name", ["plan", "runs show"])
def test_a_region_that_is_invalid_is_named(capsys, monkeypatch, name):
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(variable, "eu_central")
    assert main([*name.split(), *COMMANDS.get(name, ())]) == 2
    _, err = capsys.readouterr()
    assert err == (
        "compactor: InvalidInput: region: 'eu_central' is not accepted; expected a region such as"
        " eu-central-1, in AWS_REGION\n"
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "ExpiredToken"), (403, "InvalidClientTokenId"), (403, "SignatureDoesNotMatch")],
)
def test_credentials_that_another_service_refuses_are_reported_as_those_that_s3_does(
    s3, capsys, monkeypatch, status, code
):
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    s3.always(Answer(status, body.encode(), {"Content-Type": "text/xml"}))
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    assert main(["runs", "show"]) == 2
    _, err = capsys.readouterr()
    assert err.startswith(f"compactor: the credentials found here are not taken ({code})\n  log in")
