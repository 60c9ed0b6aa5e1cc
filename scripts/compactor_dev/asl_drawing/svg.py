"""The drawing as SVG: plain shapes and texts, no script, no font of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from compactor_dev.asl_drawing.places import HEAD_HEIGHT, NAME_SIZE, NOTE_SIZE, Box, Picture, Wire

_MARGIN, _LEGEND_HEIGHT = 14.0, 30.0
# Fill and border by kind of node.
_COLOURS = {
    "lambda": ("#fdebd3", "#d9822b"),
    "spark": ("#e7e0f7", "#7a5bc0"),
    "task": ("#e3ecf7", "#4a76ad"),
    "choice": ("#fff8cf", "#b59b1f"),
    "pass": ("#f1f3f5", "#8a939b"),
    "wait": ("#f1f3f5", "#8a939b"),
    "succeed": ("#d9f2e0", "#2f8f4e"),
    "fail": ("#fbdcdc", "#c23b3b"),
    "parallel": ("#ffffff", "#8a939b"),
    "map": ("#fbfcfe", "#4a76ad"),
}
_LEGEND = (
    ("lambda", "Lambda function"),
    ("spark", "Spark on EMR"),
    ("choice", "choice"),
    ("pass", "data only"),
    ("succeed", "success"),
    ("fail", "failure"),
)
_INK, _LINE, _ERROR = "#1f2933", "#5b6770", "#c23b3b"
_STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;text-anchor:middle;fill:" + _INK + "}"
    f".name{{font-size:{NAME_SIZE:g}px}}.note{{font-size:{NOTE_SIZE:g}px;fill:#52606d}}"
    f".label,.halo{{font-size:{NOTE_SIZE:g}px}}.halo{{stroke:#fff;stroke-width:4px}}"
    ".bold{font-weight:bold}.left{text-anchor:start}"
    f"path{{fill:none;stroke:{_LINE};stroke-width:1.3}}"
    f".caught{{stroke:{_ERROR};stroke-dasharray:5 4}}"
)


def draw(picture: Picture, title: str) -> str:
    """The SVG document.

    Args:
        picture: what to draw, placed at (0, 0).
        title: for who cannot see it.
    """
    width = picture.width + 2 * _MARGIN
    height = picture.height + 2 * _MARGIN + _LEGEND_HEIGHT
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size}>',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        "<defs>",
        _marker("arrow", _LINE),
        _marker("error", _ERROR),
        "</defs>",
        f'<rect {size} fill="#fff"/>',
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">',
        *_picture(picture),
        *_legend(picture.height + _LEGEND_HEIGHT - 6),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _picture(picture: Picture) -> Iterator[str]:
    for box in picture.boxes:
        yield from _box(box)
    # Over the boxes: none of them leads through one.
    for wire in picture.wires:
        yield _path(wire)
    for wire in picture.wires:
        yield from _label(wire)


def _box(box: Box) -> Iterator[str]:
    fill, border = _COLOURS[box.node.kind]
    if box.node.kind == "choice":
        yield _choice(box, fill, border)
    else:
        radius = 14 if box.node.kind in {"succeed", "fail"} else 5
        yield (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}"'
            f' height="{box.height:.1f}" rx="{radius}" fill="{fill}" stroke="{border}"/>'
        )
    height = HEAD_HEIGHT if box.inside else box.height
    if box.node.note:
        yield _text(box.node.name, (box.middle, box.y + height / 2 - 2), "name bold")
        yield _text(box.node.note, (box.middle, box.y + height / 2 + 13), "note")
    else:
        yield _text(box.node.name, (box.middle, box.y + height / 2 + 4.5), "name")
    for one in box.inside:
        yield from _picture(one)


def _choice(box: Box, fill: str, border: str) -> str:
    """A box with pointed sides."""
    left, right, slope = box.x, box.x + box.width, 9
    top, bottom, middle = box.y, box.y + box.height, box.y + box.height / 2
    corners = (
        (left + slope, top),
        (right - slope, top),
        (right, middle),
        (right - slope, bottom),
        (left + slope, bottom),
        (left, middle),
    )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polygon points="{points}" fill="{fill}" stroke="{border}"/>'


def _path(wire: Wire) -> str:
    (x1, y1), (x2, y2), (x3, y3), (x4, y4) = wire.points
    if wire.back:
        line = f"M{x1:.1f} {y1:.1f}H{x2 - 6:.1f}Q{x2:.1f} {y2:.1f} {x2:.1f} {y2 - 6:.1f}"
        line += f"V{y3 + 6:.1f}Q{x3:.1f} {y3:.1f} {x3 - 6:.1f} {y3:.1f}H{x4 + 1:.1f}"
    else:
        half = (y2 + y3) / 2
        line = f"M{x1:.1f} {y1:.1f}V{y2:.1f}C{x1:.1f} {half:.1f} {x3:.1f} {half:.1f}"
        line += f" {x3:.1f} {y3 - (1 if wire.arrow else 0):.1f}"
        line += "" if wire.arrow else f"V{y4:.1f}"
    marker = "error" if wire.caught else "arrow"
    end = f' marker-end="url(#{marker})"' if wire.arrow else ""
    style = ' class="caught"' if wire.caught else ""
    return f'<path{style} d="{line}"{end}/>'


def _label(wire: Wire) -> Iterator[str]:
    lines = wire.label.split("\n") if wire.label else []
    x, last = wire.label_at
    for number, line in enumerate(lines):
        at = (x, last - (len(lines) - 1 - number) * (NOTE_SIZE + 1))
        # Not every program knows paint-order, so the halo is a text of its own.
        yield _text(line, at, "halo")
        yield _text(line, at, "label")


def _legend(y: float) -> Iterable[str]:
    x = 0.0
    for kind, meaning in _LEGEND:
        fill, border = _COLOURS[kind]
        yield (
            f'<rect x="{x:.1f}" y="{y - 11:.1f}" width="16" height="12" rx="3" fill="{fill}"'
            f' stroke="{border}"/>'
        )
        yield _text(meaning, (x + 22, y), "note left")
        x += 125
    yield f'<path class="caught" d="M{x:.1f} {y - 5:.1f}h26" marker-end="url(#error)"/>'
    yield _text("on error", (x + 34, y), "note left")


def _text(text: str, at: tuple[float, float], style: str) -> str:
    return f'<text class="{style}" x="{at[0]:.1f}" y="{at[1]:.1f}">{escape(text)}</text>'


def _marker(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        f' markerHeight="7" orient="auto"><polygon points="0,0.5 8,4 0,7.5" fill="{colour}"/>'
        "</marker>"
    )
