"""Detection and framing without the rules for uncertain content.

All guards of the formats are removed together: content that starts like JSON is JSON lines, the
first line of a ``.csv`` is a header unless it has a number or an ISO date as a field, and the rest
is text. Checksums and manifests stay right: only reading the outputs as other programs do shows the
lost records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from compactor.formats.detect import Detected
from compactor.formats.framing import Framed
from compactor.model import Format, Signature
from compactor.outputs import compact
from compactor.outputs.neighbours import Neighbours

_BOM = b"\xef\xbb\xbf"
_DATA = re.compile(rb"[+-]?\d+(?:\.\d+)?|\d{4}-\d\d-\d\d(?:[T ].*)?")


def naive_detect(head: bytes, key: str, **_: object) -> Detected | None:
    """Return the format by the first byte and the name."""
    head = head.removeprefix(_BOM)
    if not head:
        return None
    if head.lstrip()[:1] in {b"{", b"["}:
        return Detected(Format.JSON_LINES)
    delimiter = b"\t" if ".tsv" in key else b","
    line = head.split(b"\n", 1)[0].removesuffix(b"\r")
    fields = [field.strip(b' "') for field in line.split(delimiter)]
    named = any(fields) and not any(map(_DATA.fullmatch, fields))
    if (".csv" in key or ".tsv" in key) and named:
        return Detected(Format.CSV if ".csv" in key else Format.TSV, line)
    return Detected(Format.TEXT)


class NaiveFramer:
    """Drops the header if it is the first line, and adds a missing last newline."""

    def __init__(self, header: bytes) -> None:
        self._header = header

    def opening(self) -> bytes:
        return self._header + b"\n" if self._header else b""

    def frame(self, content: bytes | memoryview) -> Framed:
        content = bytes(content)
        prefix = _BOM if content.startswith(_BOM) else b""
        if self._header:
            line = content[len(prefix) :].split(b"\n", 1)[0] + b"\n"
            prefix = content[: len(prefix) + len(line)]
        body = content[len(prefix) :]
        if not body:
            return Framed(b"", (), 0, prefix)
        missing = b"" if body.endswith(b"\n") else b"\n"
        records = body.count(b"\n") + len(missing)
        return Framed(b"", (body, missing), records, prefix, appended=len(missing))

    def stream(self) -> None:
        return

    def closing(self) -> bytes:
        return b""


def naive_framer(signature: Signature, **_: object) -> NaiveFramer:
    """Return a framer for any signature."""
    return NaiveFramer(signature.header)


@contextmanager
def without_rules() -> Iterator[None]:
    """Within the block, make the product compact uncertain content as well."""
    stand_ins = (
        (compact, "detector", lambda *_: lambda head, key, _: naive_detect(head, key)),
        (compact, "framer_for", naive_framer),
        (compact, "Neighbours", lambda **_: Neighbours(judges=False)),
    )
    with ExitStack() as stack:
        for module, name, stand_in in stand_ins:
            stack.enter_context(patch.object(module, name, stand_in))
        yield
