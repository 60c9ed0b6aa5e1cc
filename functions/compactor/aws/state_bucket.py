"""Checks that a Distributed Map can use the bucket of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from compactor.errors import InvalidInput
from compactor.settings.uris import S3Uri

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_FIELD = "s3_state_uri"
_OK, _DENIED = 200, 403


def require_state_nearby(state: S3Uri, client: S3Client, region: str, account: str) -> None:
    """Refuse a state in another region or account than the state machine.

    A Distributed Map reads its items from the state and writes its results there, and needs a
    bucket in its own account and region ("ItemReader (Map)" and "ResultWriter (Map)" in the Step
    Functions manual). Costs one LIST. Where S3 does not say, nothing is refused.

    Args:
        state: location of the state.
        client: the client of the function's store.
        region: of the state machine.
        account: of the state machine.

    Raises:
        InvalidInput: the bucket is in another region, or another account owns it.
    """
    answer = _listed(state, client, {"ExpectedBucketOwner": account})
    # S3 says it with refusals, too.
    found = answer.get("HTTPHeaders", {}).get("x-amz-bucket-region", region)
    if found != region:
        accepted = f"a bucket in {region}, the region of the state machine; this one is in {found}"
        raise InvalidInput(_FIELD, state.uri, accepted)
    # A missing right is refused with the same code, but without the expectation as well.
    if _status(answer) == _DENIED and _status(_listed(state, client, {})) == _OK:
        accepted = f"a bucket of the account {account}, in which the state machine is"
        raise InvalidInput(_FIELD, state.uri, accepted)


def _listed(state: S3Uri, client: S3Client, more: Mapping[str, str]) -> Mapping[str, Any]:
    """List one key, and return how S3 answered; empty if it did not."""
    asked: dict[str, Any] = {"Bucket": state.bucket, "Prefix": state.prefix, "MaxKeys": 1, **more}
    try:
        answer: Any = client.list_objects_v2(**asked)
    except ClientError as error:
        answer = error.response
    except BotoCoreError:
        return {}
    found: Mapping[str, Any] = answer["ResponseMetadata"]
    return found


def _status(answer: Mapping[str, Any]) -> int:
    return int(answer.get("HTTPStatusCode", 0))
