"""CloudFront standard logs: ``#Version:`` and ``#Fields:`` once, then rows.

Source: CloudFront standard logs (legacy) in the AWS documentation.
"""

from __future__ import annotations

import re

from compactor.formats.headed import HeadedFramer, ended
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look, malformed
from compactor.model import Format, QuarantineReason

_HEADER = re.compile(rb"(#Version:[^\n]*\n#Fields:[^\n]*)(\n|\Z)")
_COMMENT = re.compile(rb"\n(#[^\r\n]*)")
_COMMENTS = re.compile(rb"(#[^\n]*(?:\n#[^\n]*)*)(\n|\Z)")
_OTHER_COMMENT = "a comment line stands below its #Fields: line"


def _recognise(look: Look) -> Detected | None:
    found = _HEADER.match(look.head)
    if found is None:
        return None
    _refuse_other_comments(look.head, found)
    header = ended(found, complete=look.complete)
    look.require_text()
    return Detected(Format.CLOUDFRONT, header)


def _declared(look: Look) -> Detected:
    look.require_text()
    found = _COMMENTS.match(look.head)
    if found is None:
        raise malformed("it does not start with a #Version: line")
    _refuse_other_comments(look.head, found)
    return Detected(Format.CLOUDFRONT, ended(found, complete=look.complete))


def _refuse_other_comments(head: bytes, header: re.Match[bytes]) -> None:
    """Raise UnreadableSource if a later comment line differs from those of the header."""
    if b"\n#" not in head[header.end(1) :]:
        return
    known = frozenset(header[1].replace(b"\r", b"").split(b"\n"))
    for found in _COMMENT.finditer(head, header.end(1)):
        if found[1] not in known:
            raise refused(QuarantineReason.UNKNOWN_FORMAT, _OTHER_COMMENT, found[1])


class CommentWatch:
    """Searches for comment lines that differ from those of the header."""

    def __init__(self, header: bytes) -> None:
        self._known = frozenset(header.replace(b"\r", b"").split(b"\n"))

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Check the next plain bytes.

        Raises:
            UnreadableSource: UNKNOWN_FORMAT, there is such a line.
        """
        piece = before[-1:] + chunk
        if b"\n#" not in piece:
            return
        for found in _COMMENT.finditer(piece):
            # A line cut off by the end of the chunk only has to be the beginning of a known one.
            whole = found.end() < len(piece)
            if found[1] not in self._known and (
                whole or not any(one.startswith(found[1]) for one in self._known)
            ):
                raise refused(QuarantineReason.UNKNOWN_FORMAT, _OTHER_COMMENT, found[1])

    def finish(self) -> None:
        """Do nothing: no row can be open at the end."""


SPEC = FormatSpec(
    format=Format.CLOUDFRONT,
    extension="log",
    media_type="text/plain",
    framer=lambda signature, _: HeadedFramer(signature.header),
    recognise=_recognise,
    begins=b"#",
    declared=_declared,
    newlines=True,
    rows="log",
    watch=CommentWatch,
)
