"""Names and texts from outside, escaped for display in a terminal, a log or a page."""

from __future__ import annotations

SHOWN_BYTES = 40


def visible(text: str) -> str:
    r"""Return the text with every character that is not printable escaped.

    A key may hold any character, and terminals act on some of them: ESC starts a command, a
    carriage return overwrites the line, bidirectional marks reverse it. They become ``\x1b``,
    ``\r``, ``\u202e``; so do line breaks and every blank but the space.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def shown_bytes(data: bytes) -> str:
    r"""Return the first bytes in quotes, all but printable ASCII escaped: ``'\x93NUMPY'``."""
    return repr(data[:SHOWN_BYTES])[1:] + ("..." if len(data) > SHOWN_BYTES else "")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
