"""Lines of logs: text that begins, and goes on, as lines of a known kind of log do."""

from __future__ import annotations

from compactor.formats import characters, log_lines
from compactor.formats.characters import Reading
from compactor.formats.lines import LineFramer
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.model import Format

_TEXT = Detected(Format.TEXT)


def _recognise(look: Look) -> Detected | None:
    head, complete, reading = look.head, look.complete, look.reading
    ascii = head.isascii()
    plain = ascii and not reading.keep_nuls
    text = head if plain else characters.ascii_of(head, keep_nuls=reading.keep_nuls)
    form = log_lines.form_of(text)
    if form is None:
        return None
    log_lines.refuse_other_lines(text, b"", form, complete=complete)
    structured = log_lines.is_structured(form)
    if complete and b'"' in text:
        log_lines.refuse_open_quote(text, structured=structured)
    if not ascii and not structured:
        # Access logs are known by their structure, and clients send any bytes.
        look.require_characters()
    return _TEXT


class TextWatch:
    """Looks at the last lines of a log that began as its first bytes show."""

    def __init__(self, head: bytes, reading: Reading) -> None:
        self._keep_nuls = reading.keep_nuls
        self._head = characters.ascii_of(head, keep_nuls=reading.keep_nuls)
        self._form = log_lines.form_of(self._head) or 0
        self.any_encoding = log_lines.is_structured(self._form)

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Lines in the middle go on as they like."""

    def finish(self, tail: bytes) -> None:
        """Look at the last lines.

        Raises:
            UnreadableSource: OPEN_QUOTE, or UNKNOWN_FORMAT.
        """
        text = characters.ascii_of(tail, keep_nuls=self._keep_nuls)
        log_lines.refuse_other_lines(self._head, text, self._form, complete=False)
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
    copied=True,
    hint="text",
    named=r"_elasticloadbalancing_[^/]*$|\.(?:log|txt)$",
)
