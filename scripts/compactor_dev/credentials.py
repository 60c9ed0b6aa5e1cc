"""Whether there are credentials for what asks AWS; one line where there are none.

``python -m compactor_dev.credentials diff ...`` is asked before ``cdk diff ...``, which finds out
only after a minute of bundling.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import boto3
from botocore.exceptions import BotoCoreError

from compactor.errors import no_credentials

# With these the CDK takes other credentials than boto3 finds, or none.
_OTHERS = ("--profile", "--template", "--help", "-h")


def missing(words: Sequence[str]) -> str:
    """What a command of the CDK lacks, in one line; empty for nothing.

    Args:
        words: the command, and what is given to it.
    """
    if any(word.partition("=")[0] in _OTHERS for word in words):
        return ""
    try:
        found = boto3.Session().get_credentials()
    except BotoCoreError as error:
        return f"make {words[0]} asks AWS, and its configuration here is of no use: {error}"
    return "" if found is not None else f"make {words[0]} asks AWS: {no_credentials()}"


if __name__ == "__main__":
    if line := missing(sys.argv[1:]):
        sys.exit(f"s3-compactor: {line}")
