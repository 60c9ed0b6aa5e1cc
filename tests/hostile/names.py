"""Keys that S3 takes (UTF-8, 1 to 1,024 bytes) and people do not expect."""

from __future__ import annotations

MARKUP = "<script>alert('1')</script><img src=x onerror=\"alert(1)\">&amp;&lt;"
TERMINAL = "\x1b[31mred\x1b]0;title\x07\x9b2J\r\b\x7f"
RICH = "[red]not red[/red] \\[bold]x[/] [link=https://example.com]y[/link] \\"
TURNED = "\u202egpj.exe\u2066\u200b\ufeff"
ODD = "\x00 \x01 \ufffe \uffff \ufdd0 \U0010ffff \ue000 \u0085 \u2028 \u00a0"

#: What must neither be obeyed nor hidden wherever it is shown.
HOSTILE = (MARKUP, TERMINAL, RICH, TURNED, ODD)

#: One of its levels, ``] [link=https:``, names a column: it is left alone, so that none is lost.
NAMES_A_COLUMN = RICH

NAMES = (
    *(f"control {chr(code)} {code}" for code in (*range(32), *range(127, 160))),
    *(one for one in HOSTILE if one != NAMES_A_COLUMN),
    NAMES_A_COLUMN.replace("=", "~"),
    "a//b",
    "//",
    "/leading",
    "trailing/ ",
    " leading blank",
    "dots/../up",
    "../../etc/passwd",
    "./here",
    "a/./b",
    "..",
    ".",
    "...",
    "quotes ' \" `",
    "entities &amp; &#38; &#x1b; &lt; &copy; &nosuch;",
    "percent %2F %00 %zz % %25",
    "plus + and blank",
    "query ? fragment # at @ colon : semicolon ;",
    "backslash \\ \\n \\u0041 \\\\host\\share",
    "globs * ** [a-z] {a,b} ~ $HOME $(id) `id` | > <",
    "NFC \u00e9",
    "NFD e\u0301",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u65e5\u672c",
    "looks like surrogates \\ud800 \ud7ff \ue000",
    "line\nbreak\r\nand\ttab",
    "commits/00000000000000000001.json.gz",
    "null",
    "__proto__",
    "-rf",
    "x" * 900,
    "\u65e5" * 300,
)
