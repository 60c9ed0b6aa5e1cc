"""What the cases of the contract have in common."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from typing import Any

from compactor.errors import CompactorError, IntegrityError, InvalidInput, TransientStoreError
from compactor.model import SourceObject, StoredPart
from compactor.ports import ObjectStore, SourceBody
from tests.contract.benches import Bench

MIB = 1024 * 1024
# More than any store holds whole.
LARGE = bytes(range(256)) * (9 * MIB // 256) + b"the end"
# A mistake of the caller: the store in memory says so by AssertionError.
REFUSED = (AssertionError, IntegrityError, InvalidInput, TransientStoreError)
ODD_KEYS = {
    "two slashes": "a//b",
    "slash first": "/a",
    "dot": "a/./b",
    "dots": "a/../b",
    "dots first": "../a",
    "dots last": "a/..",
    "three dots": "a/...",
    "slash last": "x/",
    "spaces": "a b c/ d",
    "plus": "a+b",
    "percent 2F": "a%2Fb",
    "percent": "100%",
    "unicode": "é/日本/😀",
    "query": "q?x=1&y=2#z",
    "markup": "<a>&amp;'\"",
    "backslash": "back\\slash",
    "punctuation": "[a]{b}^`|~",
    "tab": "tab\there",
    "return": "return\rhere",
    "bell": "bell\x07here",
    "delete": "delete\x7fhere",
    "900 bytes": "k" * 900,
    "900 bytes of unicode": "é" * 450,
    "many levels": "long/" * 180,
    "1024 bytes": ("k" * 127 + "/") * 7 + "k" * 128,
}


def keys_of(pages: Any) -> list[str]:
    return [one.key for page in pages for one in page]


def content_of(body: SourceBody) -> bytes:
    if body.error is not None:
        raise body.error
    if body.content is not None:
        return body.content
    assert body.chunks is not None
    return b"".join(body.chunks())


def read(store: ObjectStore, *sources: SourceObject) -> list[bytes]:
    return [content_of(body) for body in store.read_sources(sources)]


def upload(bench: Bench, key: str, *bodies: bytes) -> tuple[str, list[StoredPart]]:
    upload_id = bench.store.create_upload(bench.bucket, key)
    numbered = enumerate(bodies, start=1)
    parts = [bench.store.upload_part(bench.bucket, key, upload_id, n, b) for n, b in numbered]
    return upload_id, parts


def publish(bench: Bench, key: str, *bodies: bytes) -> None:
    upload_id, parts = upload(bench, key, *bodies)
    crc32 = zlib.crc32(b"".join(bodies))
    bench.store.complete_upload(bench.bucket, key, upload_id, parts, crc32=crc32)


def at_once(*actions: Callable[[], object]) -> list[str]:
    """Do these at the same moment; tells for each the name of its error, or nothing."""
    start = threading.Barrier(len(actions), timeout=60)
    said = [""] * len(actions)

    def run(number: int) -> None:
        start.wait()
        try:
            actions[number]()
        except CompactorError as error:
            said[number] = type(error).__name__

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said
