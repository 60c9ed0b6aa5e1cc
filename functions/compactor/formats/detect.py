r"""Detects the format of a source, if and only if it is certain.

Two sources are joined only if it is certain that a reader of the joined object sees the records of
both and nothing else. A source is taken as a format if one of these holds; others are left alone:

1. Declared: the setting ``formats`` names it. The content is checked against the declaration.
2. Named or dated: the key ends in ``.log`` or ``.parquet``, or the first lines begin with a date
   and time as those of a log (``text``). The content is checked.
3. Proven by parsing: JSON lines, undelimited objects, arrays of objects, CloudTrail and other
   documents with one list. Every byte is parsed.
4. Headed logs of AWS: VPC flow and CloudFront, by the names of their fields.

CSV and TSV are only ever declared: no bytes prove a header.
"""

from __future__ import annotations

import re

from compactor.formats import json_lines
from compactor.formats.declaration import Declaration
from compactor.formats.known_formats import BY_FIRST_BYTE, spec_of
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, Look, malformed
from compactor.model import QuarantineReason

__all__ = ["Detected", "detect"]

_FIRST = re.compile(rb"[ \t\r\n]*+(.)", re.DOTALL)
_BLANK = frozenset(b" \t\r\n")


def detect(
    head: bytes, key: str, *, complete: bool, declaration: Declaration | None = None
) -> Detected | None:
    """Return the format of a source, by the rules above.

    Args:
        head: the first plain bytes: at least 64 KiB, or all there are.
        key: the source's key.
        complete: whether ``head`` is the whole source.
        declaration: what a person declared about it.

    Returns:
        None for an empty source, which fits any group.

    Raises:
        UnreadableSource: the format is not certain, or contradicts the declaration.
    """
    head = head.removeprefix(BOM)
    if not head:
        return None
    if head.startswith(BOM):
        # If the first BOM were dropped, readers of the output would drop the second as theirs.
        seen = "it begins with two byte order marks"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head, "")
    look = Look(head, key, declaration, complete=complete)
    return _certain(look) if declaration is None else _declared(look, declaration)


def _declared(look: Look, declaration: Declaration) -> Detected | None:
    spec = spec_of(declaration.format)
    if spec.declared is not None:
        return spec.declared(look)
    if spec.proven or spec.recognise is None:
        # Its framer proves it.
        return Detected(declaration.format)
    detected = spec.recognise(look)
    if detected is None:
        raise malformed(f"it is not {declaration.format.value}, as formats declares")
    return detected


def _certain(look: Look) -> Detected:
    head = look.head
    first = head[0]
    if first in _BLANK:
        after = _FIRST.match(head)
        if after is not None:
            first = after[1][0]
    for recognise in BY_FIRST_BYTE[first]:
        detected = recognise(look)
        if detected is not None:
            return detected
    # Content that begins with a brace is not tried as text.
    raise json_lines.no_lines(head, complete=look.complete)
