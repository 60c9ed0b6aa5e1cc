"""Parses JSON that is nested deeper than Python's decoder allows.

Python's limit depends on the interpreter: some 1,000 levels on Python 3.11, 10,000 on 3.12 and
3.13, and as many as fit the stack from 3.14 on. The first reading's decoder accepts deeper nesting
than Python's own.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<opening>[\[{]) | (?P<closing>[\]}]) | (?P<comma>,) | (?P<colon>:)
        | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
        | (?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?
            | true | false | null | NaN | -?Infinity)
    )""",
    re.VERBOSE,
)
_CLOSES = {"[": "]", "{": "}"}
_VALUE = frozenset(("opening", "string", "scalar"))
_VALUE_OR_END = _VALUE | {"closing"}
_NAME, _NAME_OR_END = frozenset(("string",)), frozenset(("string", "closing"))
_COLON, _FOLLOWING = frozenset(("colon",)), frozenset(("comma", "closing"))
_NOTHING: frozenset[str] = frozenset()


def end_of_value(text: str, at: int) -> int:
    """Return the end of the JSON value that begins here, with or without leading whitespace.

    Args:
        text: contains the value, and anything after it.
        at: where the value begins.

    Raises:
        ValueError: there is no value, or it does not end.
    """
    wanted = _VALUE
    within: list[str] = []
    while wanted:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup not in wanted:
            raise ValueError(f"no JSON at character {at}")
        wanted = _wanted_after(found, wanted, within)
        at = found.end()
    return at


def _wanted_after(
    found: re.Match[str], wanted: frozenset[str], within: list[str]
) -> frozenset[str]:
    """Return the tokens that may follow an expected token; none after the end of the value."""
    kind, character = found.lastgroup, found[0].lstrip()
    if kind == "opening":
        within.append(_CLOSES[character])
        return _NAME_OR_END if character == "{" else _VALUE_OR_END
    if kind == "comma":
        return _NAME if within[-1] == "}" else _VALUE
    if kind == "colon":
        return _VALUE
    if kind == "string" and wanted <= _NAME_OR_END:
        return _COLON
    if kind == "closing" and within.pop() != character:
        raise ValueError(f"another bracket should close at character {found.start()}")
    return _FOLLOWING if within else _NOTHING
