"""AWS region from the environment, and errors of botocore in plain words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import InvalidInput, no_credentials

_REGION, _REGION_OF_BOTO3 = "AWS_REGION", "AWS_DEFAULT_REGION"
# Error codes for credentials, of services other than S3.
_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


@contextmanager
def region_of_environment() -> Iterator[None]:
    """Honour AWS_REGION within the block, as other AWS tools do; boto3 reads another name."""
    region = os.environ.get(_REGION)
    if not region or os.environ.get(_REGION_OF_BOTO3):
        yield
        return
    os.environ[_REGION_OF_BOTO3] = region
    try:
        yield
    finally:
        os.environ.pop(_REGION_OF_BOTO3, None)


def in_words(error: Exception) -> Exception:
    """Return an error of botocore about region, profile or credentials in words; else the error.

    Matches by class name, because importing botocore takes longer than printing the help.
    """
    names = {base.__name__ for base in type(error).__mro__}
    if "NoRegionError" in names:
        way = "name one with --region, in AWS_REGION, or in your profile (aws configure)"
        return InvalidInput("region", None, way, message=f"no AWS region found: {way}")
    if "InvalidRegionError" in names:
        region = os.environ.get(_REGION) or os.environ.get(_REGION_OF_BOTO3)
        return InvalidInput("region", region, "a region such as eu-central-1, in AWS_REGION")
    if "ProfileNotFound" in names:
        profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
        way = "aws configure list-profiles lists the existing profiles"
        happened = f"AWS_PROFILE names the profile {profile}, which does not exist"
        if not profile:
            happened, way = "AWS_PROFILE is set, but empty", "unset it, or name a profile"
        message = f"{happened}: {way}"
        return InvalidInput("AWS_PROFILE", profile, way, message=message)
    if names & {"NoCredentialsError", "PartialCredentialsError"}:
        return no_credentials(str(error) if "PartialCredentialsError" in names else "")
    if "ClientError" in names:
        code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
        return no_credentials(code) if code in _CREDENTIALS else error
    return error
