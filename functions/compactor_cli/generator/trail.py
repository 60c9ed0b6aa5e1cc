"""CloudTrail documents: ``{"Records":[...]}`` of management events.

Source of the fields: CloudTrail user guide, "CloudTrail record contents", and real objects.
"""

from __future__ import annotations

import json
import re
from random import Random

from compactor_cli.generator.drawing import Draw, address, clock

_POOL = 1_024
_MARKS = ("@account@", "@region@", "@time@", "@request@", "@event@")
_CALLS: tuple[tuple[str, str, dict[str, object] | None, bool], ...] = (
    ("ec2", "DescribeInstances", {"instancesSet": {}, "filterSet": {}}, True),
    ("ec2", "RunInstances", {"instanceType": "m7g.large", "minCount": 1, "maxCount": 1}, False),
    ("s3", "GetBucketAcl", {"bucketName": "shop-assets", "acl": ""}, True),
    ("s3", "PutBucketTagging", {"bucketName": "shop-assets", "tagging": ""}, False),
    ("iam", "ListRoles", {"maxItems": 100}, True),
    ("iam", "GetUser", None, True),
    ("sts", "AssumeRole", {"roleSessionName": "deploy", "durationSeconds": 3600}, True),
    ("kms", "Decrypt", {"encryptionContext": {"aws:s3:arn": "arn:aws:s3:::shop-logs"}}, True),
    ("lambda", "Invoke20150331", {"functionName": "orders", "sourceArn": "-"}, False),
    ("logs", "CreateLogStream", {"logGroupName": "/aws/lambda/orders"}, False),
)
_AGENTS = (
    "aws-cli/2.17.5 md/awscrt#0.20.11 ua/2.0 os/linux#6.1 lang/python#3.11.8",
    "Boto3/1.34.131 md/Botocore#1.34.131 ua/2.0 os/linux",
    "APN/1.0 HashiCorp/1.0 Terraform/1.8.5 (+https://www.terraform.io) aws-sdk-go-v2/1.30.0",
    "lambda.amazonaws.com",
)


class TrailRenderer:
    """CloudTrail records, some 1,200 bytes each; a document without a record is valid too."""

    separator = ","
    epilogue = "]}"

    def __init__(self, seed: int) -> None:
        rng = Random(f"trail:{seed}")
        self._records = [_pieces(_record(rng)) for _ in range(_POOL)]

    def prologue(self, draw: Draw) -> str:
        """The envelope's beginning."""
        return '{"Records":['

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Events of the object's five minutes, in order of time."""
        rng, day, times = draw.rng, draw.day, clock()
        digits = rng.randbytes(32 * rows).hex()
        pairs = zip(draw.seconds(rows), rng.choices(self._records, k=rows), strict=True)
        records = []
        for row, (second, pieces) in enumerate(pairs):
            d = digits[64 * row : 64 * row + 64]
            values = {
                "@account@": draw.site.account,
                "@region@": draw.site.region,
                "@time@": f"{day}T{times[second]}Z",
                "@request@": f"{d[:8]}-{d[8:12]}-4{d[13:16]}-8{d[17:20]}-{d[20:32]}",
                "@event@": f"{d[32:40]}-{d[40:44]}-4{d[45:48]}-b{d[49:52]}-{d[52:]}",
            }
            records.append("".join([values.get(piece, piece) for piece in pieces]))
        return records


def _pieces(record: dict[str, object]) -> list[str]:
    """The rendered record, cut so that every mark is a piece of its own."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return re.split("(" + "|".join(_MARKS) + ")", text)


def _record(rng: Random) -> dict[str, object]:
    service, name, parameters, read_only = rng.choice(_CALLS)
    denied = rng.random() < 0.04
    failure = {"errorCode": "AccessDenied", "errorMessage": f"not authorized: {service}:{name}"}
    return {
        "eventVersion": "1.10",
        "userIdentity": _identity(rng),
        "eventTime": "@time@",
        "eventSource": f"{service}.amazonaws.com",
        "eventName": name,
        "awsRegion": "@region@",
        "sourceIPAddress": address(rng),
        "userAgent": rng.choice(_AGENTS),
        **(failure if denied else {}),
        "requestParameters": parameters,
        "responseElements": None if read_only or denied else {"requestId": "@request@"},
        "requestID": "@request@",
        "eventID": "@event@",
        "readOnly": read_only,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": "@account@",
        "eventCategory": "Management",
        "tlsDetails": {
            "tlsVersion": "TLSv1.3",
            "cipherSuite": "TLS_AES_128_GCM_SHA256",
            "clientProvidedHostHeader": f"{service}.@region@.amazonaws.com",
        },
    }


def _identity(rng: Random) -> dict[str, object]:
    user = rng.choice(("ana", "bo", "ci-deploy", "terraform", "zoë"))
    principal = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16))
    if rng.random() < 0.3:
        return {
            "type": "IAMUser",
            "principalId": f"AIDA{principal}",
            "arn": f"arn:aws:iam::@account@:user/{user}",
            "accountId": "@account@",
            "accessKeyId": f"AKIA{principal}",
            "userName": user,
        }
    return {
        "type": "AssumedRole",
        "principalId": f"AROA{principal}:{user}",
        "arn": f"arn:aws:sts::@account@:assumed-role/{user}-role/{user}",
        "accountId": "@account@",
        "accessKeyId": f"ASIA{principal}",
        "sessionContext": {
            "sessionIssuer": {
                "type": "Role",
                "principalId": f"AROA{principal}",
                "arn": f"arn:aws:iam::@account@:role/{user}-role",
                "accountId": "@account@",
                "userName": f"{user}-role",
            },
            "attributes": {"creationDate": "@time@", "mfaAuthenticated": "false"},
        },
    }
