"""Checks for AWS credentials before a slow command, and reports missing ones in one line.

``python -m compactor_dev.credentials diff ...`` runs before ``cdk diff ...``, which would only fail
after a minute of bundling.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import boto3
from botocore.exceptions import BotoCoreError

from compactor.errors import no_credentials

# With these, the CDK uses other credentials than boto3 finds, or none.
_OTHERS = ("--profile", "--template", "--help", "-h")


def missing(words: Sequence[str]) -> str:
    """Return why a command of the CDK has no credentials, in one line; empty if it has some.

    Args:
        words: the command and its arguments.
    """
    if any(word.partition("=")[0] in _OTHERS for word in words):
        return ""
    try:
        found = boto3.Session().get_credentials()
    except BotoCoreError as error:
        return f"make {words[0]} needs AWS, and its configuration is invalid: {error}"
    return "" if found is not None else f"make {words[0]} needs AWS: {no_credentials()}"


if __name__ == "__main__":
    if line := missing(sys.argv[1:]):
        sys.exit(f"s3-compactor: {line}")
