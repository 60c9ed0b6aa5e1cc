"""The drawing of the dashboard in docs/: where each widget is, and what it shows.

``python -m cdk.dashboard_picture`` makes it from the dashboard of the template; it is a drawing of
the layout, and no screenshot: no line in it stands for a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from cdk.app import synthesize
from compactor_dev.settings_table import DOCS

PICTURE = DOCS / "dashboard.svg"
# CloudWatch divides a dashboard into 24 columns; pixels of a column, of a row, and between widgets.
_COLUMNS, _COLUMN, _ROW, _GAP = 24, 40, 22, 4
_TOP, _TITLE, _LINE = 34, 17, 15
_COLORS = ("#2f6db3", "#c46210", "#3c7d3c", "#8a4a9e", "#a33b3b", "#5c6670")
_LETTERS_OF_A_WIDGET = 46
_LOOK = 'font-family="sans-serif" role="img" aria-labelledby="title"'
_TEXT = "The layout of the dashboard, drawn from the template: no values are shown"


def drawn(template: Mapping[str, Any]) -> str:
    """The SVG document of the one dashboard of a template."""
    widgets = list(_widgets(template))
    height = _TOP + max(one["y"] + one["height"] for one in widgets) * _ROW
    width = _COLUMNS * _COLUMN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_LOOK}>',
        f'<title id="title">{_TEXT}</title>',
        f'<rect width="{width}" height="{height}" fill="#f4f5f7"/>',
        f'<text x="{2 * _GAP}" y="22" font-size="14" fill="#222">{_TEXT}</text>',
    ]
    for one in widgets:
        lines += _widget(one)
    return "\n".join([*lines, "</svg>", ""])


def _widgets(template: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The widgets of the dashboard's body, whose tokens stand for what only AWS knows."""
    resources: Mapping[str, Mapping[str, Any]] = template["Resources"]
    (dashboard,) = (
        one["Properties"]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Dashboard"
    )
    body = dashboard["DashboardBody"]
    pieces = body["Fn::Join"][1] if isinstance(body, Mapping) else [body]
    text = "".join(one if isinstance(one, str) else "token" for one in pieces)
    yield from json.loads(text)["widgets"]


def _widget(one: Mapping[str, Any]) -> Iterator[str]:
    """A frame with a title, and what is drawn in it by name."""
    left, top = one["x"] * _COLUMN + _GAP, _TOP + one["y"] * _ROW + _GAP
    width, height = one["width"] * _COLUMN - 2 * _GAP, one["height"] * _ROW - 2 * _GAP
    yield (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="4" fill="#ffffff"'
        ' stroke="#c9ced6"/>'
    )
    title = _cut(one["properties"]["title"])
    yield (
        f'<text x="{left + 10}" y="{top + _TITLE + 3}" font-size="12" font-weight="bold"'
        f' fill="#222">{escape(title)}</text>'
    )
    room = (height - _TITLE - 12) // _LINE
    names = _names(one)
    shown = (
        names if len(names) <= room else [*names[: room - 1], f"and {len(names) - room + 1} more"]
    )
    for number, name in enumerate(shown):
        y = top + _TITLE + 10 + (number + 1) * _LINE
        color = _COLORS[number % len(_COLORS)]
        yield f'<rect x="{left + 12}" y="{y - 8}" width="12" height="4" fill="{color}"/>'
        yield f'<text x="{left + 30}" y="{y - 2}" font-size="11" fill="#444">{escape(name)}</text>'


def _names(one: Mapping[str, Any]) -> Sequence[str]:
    """What a widget draws: a metric's label, else its name; of a query its kind."""
    properties = one["properties"]
    if one["type"] == "log":
        return ["a table of a query over the log of the runs"]
    found = []
    for metric in properties.get("metrics", ()):
        options = metric[-1] if isinstance(metric[-1], Mapping) else {}
        if options.get("visible") is False:
            continue
        # Namespace and name come first, where it is no expression of others.
        name = metric[1] if len(metric) > 1 and isinstance(metric[1], str) else ""
        found.append(_cut(options.get("label") or name or "a sum of others"))
    return found


def _cut(text: str) -> str:
    if len(text) <= _LETTERS_OF_A_WIDGET:
        return text
    return f"{text[: _LETTERS_OF_A_WIDGET - 1]}…"


if __name__ == "__main__":
    PICTURE.write_text(drawn(synthesize({})), encoding="utf-8")
