"""Requests to S3, and to the services beside it, as the IAM actions that they need.

From the services' authorization references, "Required permissions for Amazon S3 API operations"
and "Using IAM with DynamoDB transactions". A request that is not known here is an error: it cannot
pass for allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from compactor_local.definition import ACCOUNT, REGION
from tests.infrastructure.cloud.iam import Call
from tests.infrastructure.cloud.recording import Request

Query = Mapping[str, str]
_NOT_FOUND = 404


class UnknownRequest(Exception):
    """What this request would need is not known here."""


def calls_of(request: Request, keys: Mapping[str, str]) -> list[Call]:
    """The uses of permissions that one request makes.

    Args:
        request: what was sent.
        keys: bucket -> ARN of the KMS key that its objects are encrypted with by default;
            the same of tables of DynamoDB.

    Raises:
        UnknownRequest: not a request that is known here.
    """
    if request.service == "sts":
        # "No permissions are required to perform this operation" (GetCallerIdentity).
        return []
    if request.service in _BY_TARGET:
        return list(_BY_TARGET[request.service](request, keys))
    if request.service != "s3":
        raise UnknownRequest(f"{request.service}: {request.method} {request.path}")
    bucket, _, key = request.path[1:].partition("/")
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    of = _of_object(request, bucket, key, query) if key else _of_bucket(request, bucket, query)
    found = list(of)
    if not key:
        # What a bucket is asked for, deletes by ETag included, decrypts nothing.
        return found
    return [*found, *_of_keys(found, keys)]


def _call(action: str, bucket: str, key: str | None = None, **context: str) -> Call:
    resource = f"arn:aws:s3:::{bucket}" if key is None else f"arn:aws:s3:::{bucket}/{key}"
    conditions = tuple((f"s3:{name}", value) for name, value in context.items())
    return Call(f"s3:{action}", resource, conditions)


_OF_BUCKET: Iterable[tuple[str, str, str]] = (
    ("GET", "uploads", "ListBucketMultipartUploads"),
    ("GET", "versions", "ListBucketVersions"),
    ("GET", "location", "GetBucketLocation"),
    ("GET", "list-type", "ListBucket"),
    ("GET", "notification", "GetBucketNotification"),
    ("PUT", "notification", "PutBucketNotification"),
)


def _of_bucket(request: Request, bucket: str, query: Query) -> Iterator[Call]:
    if request.method == "POST" and "delete" in query:
        for named in re.findall(r"<Object>(.*?)</Object>", request.body, re.DOTALL):
            key = _text(named, "Key")
            yield _call("DeleteObject", bucket, key)
            if "<ETag>" in named:
                # A delete that names an ETag reads the object's first.
                yield _call("GetObject", bucket, key)
        return
    if request.method == "HEAD":
        yield _call("ListBucket", bucket)
        return
    for method, parameter, action in _OF_BUCKET:
        if request.method == method and parameter in query:
            # S3 has no s3:prefix to compare where the request has none.
            known = {name: query[name] for name in ("prefix", "delimiter") if name in query}
            yield _call(action, bucket, **known)
            return
    raise UnknownRequest(f"{request.method} {request.path}?{request.query}")


def _of_object(request: Request, bucket: str, key: str, query: Query) -> Iterator[Call]:
    if "versionId" in query or "acl" in query:
        raise UnknownRequest(f"{request.method} {request.path}?{request.query}")
    if request.method in ("GET", "HEAD"):
        if "uploadId" in query:
            yield _call("ListMultipartUploadParts", bucket, key)
            return
        yield _call("GetObject", bucket, key)
        if request.status == _NOT_FOUND:
            # Who may not list gets 403 for what is not there. A condition on s3:prefix is then
            # compared with the key (what Ceph does to match AWS, in its pull request 68577).
            yield _call("ListBucket", bucket, prefix=key)
    elif request.method == "DELETE":
        action = "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
        yield _call(action, bucket, key)
    elif request.method == "PUT" or {"uploads", "uploadId"} & query.keys():
        yield _call("PutObject", bucket, key)
        yield from _copied(request)
    else:
        raise UnknownRequest(f"{request.method} {request.path}?{request.query}")


def _copied(request: Request) -> Iterator[Call]:
    if "tagging" in request.headers or "acl" in request.headers:
        raise UnknownRequest(f"{request.path} with tags or an ACL")
    if "copy-source" in request.headers:
        source = unquote(request.headers["copy-source"]).lstrip("/").partition("?")[0]
        bucket, _, key = source.partition("/")
        yield _call("GetObject", bucket, key)


_KMS = {
    # An upload in parts reads what it encrypted when it is completed or goes on.
    "s3:PutObject": ("kms:GenerateDataKey", "kms:Decrypt"),
    "s3:GetObject": ("kms:Decrypt",),
}


def _of_keys(calls: Iterable[Call], keys: Mapping[str, str]) -> Iterator[Call]:
    for call in calls:
        bucket = call.resource.removeprefix("arn:aws:s3:::").partition("/")[0]
        if bucket in keys:
            yield from (Call(action, keys[bucket]) for action in _KMS.get(call.action, ()))


def _text(xml: str, name: str) -> str:
    found = re.search(f"<{name}>(.*?)</{name}>", xml, re.DOTALL)
    if found is None:
        raise UnknownRequest(f"no {name} in {xml}")
    entities = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
    return re.sub(r"&\w+;", lambda match: entities[match[0]], found[1])


def _target(request: Request) -> tuple[str, Mapping[str, Any]]:
    """Operation and members of a request whose header names what it asks for."""
    operation = request.headers["target"].rpartition(".")[2]
    return operation, json.loads(request.body)


# A transaction needs what its parts would need alone.
_PARTS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_ON_ITEMS = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"}


def _of_dynamodb(request: Request, keys: Mapping[str, str]) -> Iterator[Call]:
    operation, body = _target(request)
    asked = [(operation, body)]
    if operation == "TransactWriteItems":
        asked = [(_PARTS[part], of) for one in body["TransactItems"] for part, of in one.items()]
    elif operation not in _ON_ITEMS:
        raise UnknownRequest(f"dynamodb: {operation}")
    for action, of in asked:
        table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{of['TableName']}"
        index = f"/index/{of['IndexName']}" if "IndexName" in of else ""
        yield Call(f"dynamodb:{action}", table + index)
        if of["TableName"] in keys:
            # The table's own key was encrypted by this one when it was made.
            yield Call("kms:Decrypt", keys[of["TableName"]])


_OF_STATES = {"StartExecution": "stateMachineArn", "DescribeExecution": "executionArn"}


def _of_states(request: Request, _: Mapping[str, str]) -> Iterator[Call]:
    operation, body = _target(request)
    if operation not in _OF_STATES:
        raise UnknownRequest(f"states: {operation}")
    yield Call(f"states:{operation}", body[_OF_STATES[operation]])


_OF_TABLES = {"GetTable", "CreateTable", "UpdateTable", "GetTableOptimizer"}
_OF_PARTITIONS = {"BatchGetPartition", "BatchCreatePartition", "BatchUpdatePartition"}
_NAMING = ("Name", "TableName")


def _of_glue(request: Request, _: Mapping[str, str]) -> Iterator[Call]:
    operation, body = _target(request)
    others = {"GetDatabase", "GetDatabases", "GetTables"}
    if operation not in _OF_TABLES | _OF_PARTITIONS | others:
        raise UnknownRequest(f"glue: {operation}")
    # Each is asked of the whole way from the catalog down ("Specifying AWS Glue resource ARNs").
    resources = ["catalog"]
    if operation == "GetDatabase":
        resources.append(f"database/{body['Name']}")
    elif operation == "GetDatabases":
        resources.append("database/any")
    elif operation == "GetTables":
        resources += [f"database/{body['DatabaseName']}", f"table/{body['DatabaseName']}/any"]
    else:
        names = [body[one] for one in _NAMING if one in body]
        database, table = body["DatabaseName"], (names or [body["TableInput"]["Name"]])[0]
        resources += [f"database/{database}", f"table/{database}/{table}"]
    for resource in resources:
        yield Call(f"glue:{operation}", f"arn:aws:glue:{REGION}:{ACCOUNT}:{resource}")


_BY_TARGET = {"dynamodb": _of_dynamodb, "states": _of_states, "glue": _of_glue}
