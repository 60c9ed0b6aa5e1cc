"""Reports from the calls the other fakes wrote down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Succeeded when every partition's last call, the Map Runs and Spark went well."""
    settings = event["settings"]
    if act("report", "", settings, context) == "more":
        return {**event, "status": "more", "goes_on": True}
    print("the fake report says hello")  # noqa: T201 - a handler's output is what is tested
    lines = (Path(settings["scratch"]) / "calls").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines]
    last = {call["path"]: call["step"] for call in calls if call["function"] != "report"}
    failed = sorted(path for path, step in last.items() if path and step != "well")
    failures = [event[name] for name in ("failure", "spark_failure", "clean_up_failure")]
    good = not failed and failures == [None, None, None]
    return {
        "status": "succeeded" if good else "failed",
        "report": {"bucket": settings["bucket"], "key": "report.json"},
        "totals": {"partitions": settings["partitions"]},
        "failed_partitions": len(failed),
        "failure": event["failure"],
        "cause": _cause(event, failed),
    }


def _cause(event: dict[str, Any], failed: list[str]) -> str:
    if event["spark_failure"] is not None:
        return "Spark: {Error}: {Cause}".format(**event["spark_failure"])
    if event["clean_up_failure"] is not None:
        return "clean-up: {Error}".format(**event["clean_up_failure"])
    return f"failed: {', '.join(failed)}" if failed else "the map run failed"
