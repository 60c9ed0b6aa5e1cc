"""Lines of text: neither a document nor a table, or with first lines like those of logs."""

from __future__ import annotations

import re

from compactor.formats import characters, json_lines, log_lines
from compactor.formats.characters import Reading
from compactor.formats.document_shapes import document_in, has_columns
from compactor.formats.lines import LineFramer
from compactor.formats.log_lines import Form
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.model import Format, QuarantineReason

_CERTAIN = Detected(Format.TEXT)
_LINES = Detected(Format.TEXT, compared=True)
# Colour sequences are ignored when a line is examined.
_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_CONTROLS = bytes({*range(9), 11, 12, *range(14, 32), 127})
_LOOKED_AT_BYTES = 64 << 10
# Suffixes to strip from a name: of a compression, of a log rotation.
_SUFFIX = re.compile(r"(?:\.(?:gz|gzip|zst|zstd)$|[.\-_]\d[\dtz.\-_:]*$)")
_EXTENSION = re.compile(r"\.([a-z][a-z0-9]*)$")
_DOCUMENT_NAME = re.compile(
    r"(?:^|[^a-z])(\w+_config|(?:docker|make|gem|proc|jenkins|vagrant|rake)file|licen[sc]e|copying"
    r"|readme|authors|notice|codeowners|hosts|crontab|fstab|passwd|authorized_keys|known_hosts|words"
    r"|(?:requirements|robots)\.txt)$"
)
_LOG_NAMES = frozenset(("log", "out", "err", "logs", "stdout", "stderr"))
_NEUTRAL_NAMES = _LOG_NAMES | {"", "txt"}


def _recognise(look: Look) -> Detected | None:
    head, complete, reading = look.head, look.complete, look.reading
    ascii = head.isascii()
    plain = ascii and not reading.keep_nuls
    text = head if plain else characters.ascii_of(head, keep_nuls=reading.keep_nuls)
    form = log_lines.form_of(text)
    if form is None:
        _refuse_others(text, look)
    if complete and b'"' in text:
        log_lines.refuse_open_quote(text, structured=form is Form.STRUCTURED)
    if not ascii and form is Form.DATED:
        # The structure of access logs identifies them, and clients send any bytes.
        look.require_characters()
    # A table's header may consist of dates.
    compared = form is None or (form is Form.DATED and has_columns(text))
    return _LINES if compared else _CERTAIN


def _refuse_others(text: bytes, look: Look) -> None:
    """Raise UnreadableSource for text that may be more than lines."""
    json_lines.refuse_other_json(text)
    look.require_characters()
    extension = _extension(look.key)
    seen = _controls(text[:_LOOKED_AT_BYTES])
    if not seen:
        named_log = extension in _LOG_NAMES
        kind = document_in(text, complete=look.complete, named_log=named_log)
        seen = f"it looks like {kind}" if kind else ""
    if not seen and log_lines.begins_within_entry(text):
        seen = "it begins within an entry, or with a line that has no date above others that do"
    if not seen and extension not in _NEUTRAL_NAMES:
        seen = f"its name ends in {extension!r}, and its first line shows no log"
    if seen:
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, look.head)


def _extension(key: str) -> str:
    """Return what a name says about the content; empty if it says nothing."""
    name, before = key.rpartition("/")[2].lower(), None
    while before != name:
        before, name = name, _SUFFIX.sub("", name)
    found = _DOCUMENT_NAME.search(name) or _EXTENSION.search(name)
    return found[1] if found else ""


def _controls(text: bytes) -> str:
    if not text.strip():
        return "it holds nothing but blanks"
    plain = _COLOUR.sub(b"", text) if b"\x1b" in text else text
    controls = len(plain) - len(plain.translate(None, _CONTROLS))
    return f"{controls:,} of its first bytes are control characters" if controls else ""


class TextWatch:
    """Checks the last lines of text."""

    def __init__(self, head: bytes, reading: Reading) -> None:
        self._keep_nuls = reading.keep_nuls
        text = characters.ascii_of(head, keep_nuls=reading.keep_nuls)
        self.any_encoding = log_lines.form_of(text) is Form.STRUCTURED

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Do nothing: lines in the middle are not checked."""

    def finish(self, tail: bytes) -> None:
        """Check the last lines.

        Raises:
            UnreadableSource: OPEN_QUOTE.
        """
        text = characters.ascii_of(tail, keep_nuls=self._keep_nuls)
        log_lines.refuse_open_quote(text[text.find(b"\n") + 1 :], structured=True)


def _watch(head: bytes, _: bytes, reading: Reading, declared: bool) -> TextWatch | None:
    return None if declared else TextWatch(head, reading)


SPEC = FormatSpec(
    format=Format.TEXT,
    extension="log",
    media_type="text/plain",
    framer=lambda *_: LineFramer(),
    recognise=_recognise,
    newlines=True,
    watch=_watch,
    hint="text",
    named=r"_elasticloadbalancing_[^/]*$|\.(?:log|txt|out|err)$",
)
