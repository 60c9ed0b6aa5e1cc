"""A middleware for moto's server that answers plain reads fast.

moto 5.2.5 takes 2 ms for a GET and 0.1 to 0.25 s for a page of a listing; log data needs thousands
of the former and dozens of the latter. Requests that are not plain are left to moto.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote
from xml.sax.saxutils import escape

from moto.s3 import models
from werkzeug.http import http_date

from compactor_local.definition import ACCOUNT
from compactor_local.s3_http import Application

_ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")
_TYPE = "x-amz-checksum-type"
_NOT_PLAIN = (
    "HTTP_RANGE",
    "HTTP_IF_NONE_MATCH",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_IF_UNMODIFIED_SINCE",
)
_LIST_PARAMETERS = {
    "list-type",
    "prefix",
    "delimiter",
    "max-keys",
    "continuation-token",
    "start-after",
    "encoding-type",
}
_PAGE = 1_000
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def serve_reads(application: Application) -> Application:
    """Answer plain GETs and HEADs of objects, and listings, without moto's request handling."""
    buckets = models.s3_backends[ACCOUNT]["aws"].buckets

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        if method not in ("GET", "HEAD"):
            return application(environ, start_response)
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        bucket_name, _, name = path[1:].partition("/")
        bucket = buckets.get(bucket_name)
        if bucket is None:
            return application(environ, start_response)
        if name:
            plain = _answer_of_object(environ, bucket, name, start_response)
            return application(environ, start_response) if plain is None else plain
        if method == "GET" and (query := _plain_listing(environ)):
            return _serve_listing(bucket, query, start_response)
        return application(environ, start_response)

    return serve


def _answer_of_object(
    environ: Mapping[str, Any], bucket: Any, name: str, start_response: Callable[..., Any]
) -> list[bytes] | None:
    """Return the response to a plain GET or HEAD; None for one that is not plain."""
    if environ.get("QUERY_STRING") or any(header in environ for header in _NOT_PLAIN):
        return None
    key = bucket.keys.get(name)
    if environ["REQUEST_METHOD"] == "HEAD":
        plain = _asks_for_head(environ, bucket, key)
        return _serve_head(key, environ, start_response) if plain else None
    if key is not None:
        plain = _asks_for_object(environ, key)
        return _serve_object(key, environ, start_response) if plain else None
    # Whether an unsigned request may see a missing key is left to moto.
    known = "HTTP_AUTHORIZATION" in environ and bucket.policy is None and name.isprintable()
    return _serve_missing(name, start_response) if known else None


def _serve_object(
    key: Any, environ: Mapping[str, Any], start_response: Callable[..., Any]
) -> list[bytes]:
    body: bytes = key.value
    start_response(
        "200 OK",
        [
            ("ETag", key.etag),
            ("Last-Modified", http_date(key.last_modified)),
            ("Content-Length", str(len(body))),
            ("Accept-Ranges", "bytes"),
            *((str(name), str(value)) for name, value in key.metadata.items()),
            *_checksum(key, environ),
        ],
    )
    return [body]


def _checksum(key: Any, environ: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers of an object's checksum, if it has one and it was requested."""
    if not key.checksum_algorithm or environ.get("HTTP_X_AMZ_CHECKSUM_MODE") != "ENABLED":
        return []
    headers = [(f"x-amz-checksum-{key.checksum_algorithm.lower()}", str(key.checksum_value))]
    # moto also keeps the type of a completed upload in the metadata.
    if key.checksum_type and _TYPE not in key.metadata:
        headers.append((_TYPE, key.checksum_type))
    return headers


def _serve_missing(name: str, start_response: Callable[..., Any]) -> list[bytes]:
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code>'
        f"<Message>The specified key does not exist.</Message><Key>{escape(name)}</Key></Error>"
    ).encode()
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    start_response("404 Not Found", headers)
    return [body]


def _asks_for_object(environ: Mapping[str, Any], key: Any) -> bool:
    """Return whether the object is plain and matches the condition."""
    if not _plain_key(key, environ) or key.storage_class in _ARCHIVED or key.encryption:
        return False
    wanted = environ.get("HTTP_IF_MATCH")
    return wanted is None or wanted.strip('"') == key.etag.strip('"')


def _plain_key(key: Any, environ: Mapping[str, Any]) -> bool:
    """Return whether an object is the only version of its key, without a composite checksum.

    What an unsigned request may see of an object with a checksum is left to moto.
    """
    if type(key) is not models.FakeKey or key.version_id != "null":
        return False
    signed = "HTTP_AUTHORIZATION" in environ and key.checksum_type != "COMPOSITE"
    return signed or not key.checksum_algorithm


def _asks_for_head(environ: Mapping[str, Any], bucket: Any, key: Any | None) -> bool:
    """Return whether a HEAD is plain, of a plain object or a missing one."""
    if "HTTP_IF_MATCH" in environ or bucket.policy is not None:
        return False
    return key is None or _plain_key(key, environ)


def _serve_head(
    key: Any | None, environ: Mapping[str, Any], start_response: Callable[..., Any]
) -> list[bytes]:
    if key is None:
        start_response("404 Not Found", [("Content-Type", "application/xml")])
        return []
    metadata = {**key.metadata, **key.response_dict, "Accept-Ranges": "bytes"}
    headers = [(str(name), str(value)) for name, value in metadata.items()]
    start_response("200 OK", headers + _checksum(key, environ))
    return []


def _plain_listing(environ: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the parameters of a plain ListObjectsV2; None for any other request."""
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    plain = query.get("list-type") == "2" and query.keys() <= _LIST_PARAMETERS
    return query if plain and query.get("max-keys", "1000").isdigit() else None


def _serve_listing(
    bucket: Any, query: Mapping[str, str], start_response: Callable[..., Any]
) -> list[bytes]:
    limit = min(int(query.get("max-keys", _PAGE)), _PAGE)
    token = query.get("continuation-token", "")
    after = base64.urlsafe_b64decode(token).decode() if token else query.get("start-after", "")
    # One more than requested shows whether there are more; a limit of 0 is never truncated.
    wanted = limit + 1 if limit else 0
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    entries = bucket.keys.page(prefix, delimiter, after, wanted)
    name = quote if query.get("encoding-type") == "url" else escape
    fields = {
        "Name": bucket.name,
        "Prefix": name(prefix),
        "Delimiter": name(delimiter),
        "EncodingType": query.get("encoding-type", ""),
        "MaxKeys": str(limit),
        "KeyCount": str(min(limit, len(entries))),
        "IsTruncated": str(len(entries) > limit).lower(),
        "NextContinuationToken": _token(entries[limit - 1]) if len(entries) > limit else "",
    }
    parts = [f"<{field}>{value}</{field}>" for field, value in fields.items() if value]
    parts += [_entry(entry, name) for entry in entries[:limit]]
    body = f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="{_NAMESPACE}">'
    data = (body + "".join(parts) + "</ListBucketResult>").encode("utf-8")
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(data)))]
    start_response("200 OK", headers)
    return [data]


def _token(last: Any) -> str:
    """Return the token by which the next page starts after this entry."""
    name: str = last if isinstance(last, str) else last.name
    return base64.urlsafe_b64encode(name.encode("utf-8")).decode("ascii")


def _entry(entry: Any, name: Callable[[str], str]) -> str:
    if isinstance(entry, str):
        return f"<CommonPrefixes><Prefix>{name(entry)}</Prefix></CommonPrefixes>"
    return (
        f"<Contents><Key>{name(entry.name)}</Key>"
        f"<LastModified>{entry.last_modified_ISO8601}</LastModified>"
        f"<ETag>{escape(entry.etag)}</ETag><Size>{entry.size}</Size>"
        f"<StorageClass>{entry.storage_class}</StorageClass></Contents>"
    )
