"""docs/dashboard.svg is what the dashboard of the template looks like."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from cdk.dashboard_picture import PICTURE, drawn
from tests.infrastructure.conftest import Synthesized

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_in_docs_is_that_of_the_template(synthesized: Synthesized) -> None:
    template = dict(synthesized("nothing set").template)
    assert PICTURE.read_text(encoding="utf-8") == drawn(template), (
        "make it anew: python -m cdk.dashboard_picture"
    )


def test_every_widget_has_its_place_and_its_title_and_none_covers_another() -> None:
    widgets: list[dict[str, Any]] = [
        {
            "type": "metric",
            "x": 8 * n,
            "y": 0,
            "width": 8,
            "height": 6,
            "properties": {
                "title": f"<{n}>",
                "metrics": [["space", "Runs", {"label": "began & ended"}], ["space", "Hidden"]],
            },
        }
        for n in range(3)
    ]
    widgets[0]["properties"]["metrics"][1].append({"visible": False})
    dashboard: dict[str, Any] = {
        "Type": "AWS::CloudWatch::Dashboard",
        "Properties": {"DashboardBody": {"Fn::Join": ["", [json.dumps({"widgets": widgets})]]}},
    }
    picture = ElementTree.fromstring(drawn({"Resources": {"One": dashboard}}))  # noqa: S314 - our own
    texts = [one.text for one in picture.iter(f"{SVG}text")]
    labels = ("began & ended", "Hidden")
    assert texts[1:] == ["<0>", labels[0], "<1>", *labels, "<2>", *labels]
    frames = [one for one in picture.iter(f"{SVG}rect") if one.get("rx")]
    lefts = [float(one.get("x", "")) for one in frames]
    widths = [float(one.get("width", "")) for one in frames]
    assert all(a + width < b for a, width, b in zip(lefts, widths, lefts[1:], strict=False))
