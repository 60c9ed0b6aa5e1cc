"""The encryption that each write names in its request, by bucket, from the environment.

Some organizations deny every PutObject and CreateMultipartUpload without the header
``x-amz-server-side-encryption``, although S3 would encrypt the object anyway ("Using server-side
encryption with Amazon S3 managed keys" in the Amazon S3 User Guide). Other write requests have no
such header: parts are encrypted as their upload says. Names and values are botocore's (s3, shapes
``ServerSideEncryption`` and ``SSEKMSKeyId``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import msgspec

from compactor.errors import InvalidInput

#: The variable. A deployment sets it for its functions and Spark jobs.
ENCRYPTION_VARIABLE = "COMPACTOR_ENCRYPTION"
#: The value for requests without a header: the bucket's default applies.
BUCKET_DEFAULT = "none"
AES256, KMS = "AES256", "aws:kms"
_ACCEPTED = (
    "none, AES256, aws:kms or the ARN of a KMS key; for single buckets BUCKET=VALUE, separated by"
    " commas"
)
_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(?:key|alias)/[A-Za-z0-9/_-]+")


class Encryption(msgspec.Struct, frozen=True):
    """What the writes to one bucket name.

    Attributes:
        algorithm: ``AES256`` or ``aws:kms``; empty for requests without a header.
        key_arn: ARN of the KMS key; empty for AES256, and for the account's key ``aws/s3``.
    """

    algorithm: str = ""
    key_arn: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of a request of botocore."""
        named = {"ServerSideEncryption": self.algorithm, "SSEKMSKeyId": self.key_arn}
        return {name: value for name, value in named.items() if value}


_NO_HEADER = Encryption()


class Encryptions(msgspec.Struct, frozen=True):
    """The encryption of each bucket.

    Attributes:
        others: of buckets that are not in ``by_bucket``.
        by_bucket: of single buckets.
    """

    others: Encryption = _NO_HEADER
    by_bucket: Mapping[str, Encryption] = {}

    def of(self, bucket: str) -> Encryption:
        """Return the encryption of a bucket."""
        return self.by_bucket.get(bucket, self.others)


def encryptions(environment: Mapping[str, str] = os.environ) -> Encryptions:
    """Return what the environment says.

    Raises:
        InvalidInput: the variable has a value that is not accepted.
    """
    text = environment.get(ENCRYPTION_VARIABLE, "").strip()
    others, by_bucket = _NO_HEADER, {}
    for entry in filter(None, text.split(",")):
        bucket, named, value = entry.strip().rpartition("=")
        if named:
            by_bucket[bucket] = _parsed(value, text)
        else:
            others = _parsed(value, text)
    return Encryptions(others, by_bucket)


def _parsed(value: str, text: str) -> Encryption:
    if value == BUCKET_DEFAULT:
        return _NO_HEADER
    if value in (AES256, KMS):
        return Encryption(value)
    if _KEY_ARN.fullmatch(value):
        return Encryption(KMS, value)
    raise InvalidInput(ENCRYPTION_VARIABLE, text, _ACCEPTED)
