"""Destinations of generated objects: an S3 prefix or a local directory, with smart-open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import smart_open

from compactor.errors import InvalidInput
from compactor_cli.generator.objects import GeneratedObject
from compactor_cli.generator.put_client import FastPutClient, PutClient

Store = Callable[[GeneratedObject], None]

_ACCEPTED = "s3://BUCKET/PREFIX or a local directory; a prefix without //, . or .. segments"


def destination(output_uri: str, endpoint_url: str | None, *, workers: int) -> Store:
    """Return a function that stores one object; safe to call from ``workers`` threads.

    Raises:
        InvalidInput: neither S3 nor local, no such bucket, or no such permission.
        TransientStoreError: the S3 endpoint does not answer.
    """
    parts = urlsplit(output_uri)
    if parts.scheme == "s3":
        bucket, prefix = _split(output_uri)
        return _BucketStore(FastPutClient(bucket, endpoint_url, workers), bucket, prefix)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return _DirectoryStore(unquote(parts.path))
    if "://" in output_uri or not output_uri:
        raise InvalidInput("output", output_uri, _ACCEPTED)
    return _DirectoryStore(output_uri)


def _split(output_uri: str) -> tuple[str, str]:
    bucket, _, prefix = output_uri.removeprefix("s3://").partition("/")
    prefix = prefix.removesuffix("/")
    segments = prefix.split("/") if prefix else []
    # Other tools cannot read such keys, and smart-open accepts s3://KEY:SECRET@BUCKET.
    odd = any(segment in ("", ".", "..") for segment in segments)
    if not bucket or odd or "@" in bucket or not prefix.isprintable():
        raise InvalidInput("output", output_uri, _ACCEPTED)
    return bucket, f"{prefix}/" if prefix else ""


class _BucketStore:
    """Stores an object with one PUT."""

    def __init__(self, client: PutClient, bucket: str, prefix: str) -> None:
        self._root = f"s3://{bucket}/{prefix}"
        self._params = {"client": client, "multipart_upload": False}

    def __call__(self, one: GeneratedObject) -> None:
        # smart-open would compress by the suffix of the key.
        with smart_open.open(
            self._root + one.key, "wb", compression="disable", transport_params=self._params
        ) as stream:
            stream.write(one.content)


class _DirectoryStore:
    """Stores an object below a local directory, with its modification time."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._made: set[Path] = set()
        self._make(self._directory)

    def __call__(self, one: GeneratedObject) -> None:
        path = self._directory / one.key
        self._make(path.parent)
        try:
            with smart_open.open(str(path), "wb", compression="disable") as stream:
                stream.write(one.content)
            os.utime(path, (one.last_modified, one.last_modified))
        except OSError as error:
            raise _unwritable(path, error) from None

    def _make(self, directory: Path) -> None:
        if directory in self._made:
            return
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(directory, error) from None
        self._made.add(directory)


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput("output", str(path), f"a writable path ({error.strerror})")
