"""The report as one HTML page, self-contained and without scripts.

Templates are rendered with autoescape, and every text is first made
:func:`compactor.escaping.visible`, so outside input can neither become markup nor hide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from compactor.escaping import visible
from compactor.money import dollar_text
from compactor.report import sentences, view
from compactor.report.charts import histogram, trend
from compactor.report.html import human_seconds, moment
from compactor.report.next_steps import next_steps
from compactor.sizes import human_bytes

_NO_SIZES: Mapping[str, Any] = {"before": (), "after": ()}
_NO_OBJECTS: Mapping[str, Any] = {"objects": 0, "bytes": 0, "examples": ()}


def render(report: Mapping[str, Any], *, stored: bool = False) -> str:
    """Return the HTML of a run report.

    Args:
        report: content of ``report.json``, of this version or an earlier one.
        stored: for the run's own prefix, where the previous report is found by a relative link.
    """
    sizes = report["sizes"] or _NO_SIZES
    return _rendered(
        "report.html.j2",
        report={"headline": "", "resting": None, **report},
        started=moment(report["started_at"]),
        sentence=sentences.sentence(report),
        failed=sentences.failed_sentence(report),
        proof=sentences.proof(report),
        verify=view.verify_command(report["settings"]),
        warnings=report["warnings"],
        tiles=_tiles(report),
        cost=report["cost"],
        sizes=histogram(sizes["before"], sizes["after"]),
        failures=view.failures(report),
        next=next_steps(report),
        partitions=view.partition_rows(report),
        scale=view.scale(report),
        previous=view.previous_run(report),
        stored=stored,
        trend=trend([*report["previous"], _line(report)]),
        requests=view.request_rows(report),
        skipped=view.skipped_rows(report),
        left=view.left_rows(report),
        quarantined=view.quarantined(report),
        overwritten=report["overwritten"] or _NO_OBJECTS,
        table=view.table_rows(report["table"]),
        readers=view.reader_rows(report["readers"]),
        clean_up=view.clean_up_rows(report["clean_up"]),
        settings=view.setting_rows(report["settings"]),
        open_rows=view.OPEN_ROWS,
    )


def _tiles(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the most important numbers, with their labels."""
    totals = report["totals"]
    before, after = totals["objects_in"], totals["objects_out"]
    means = (totals["bytes_in"] / max(1, before), totals["bytes_out"] / max(1, after))
    figures = [
        ("Objects", f"{before:,} → {after:,}"),
        ("Bytes", f"{human_bytes(totals['bytes_in'])} → {human_bytes(totals['bytes_out'])}"),
        ("Average size", f"{human_bytes(means[0])} → {human_bytes(means[1])}"),
        ("Records", f"{totals['records']:,}"),
    ]
    tiles = [
        # If the run did nothing, the sentence says so.
        *(() if sentences.is_idle(report) else figures),
        ("Partitions", f"{sentences.partition_count(report):,}"),
        *([("Wall time", human_seconds(report["wall_seconds"]))] if report["wall_seconds"] else []),
        ("Time of all workers", human_seconds(totals["seconds"])),
    ]
    if report["cost"]:
        tiles.append(("Cost, about", dollar_text(report["cost"]["dollars"])))
    if totals.get("rejects_waiting"):
        tiles.append(("Rejected records", f"{totals['rejects_waiting']:,}"))
    if totals["quarantined"]:
        tiles.append(("Quarantined", f"{totals['quarantined']:,}"))
    if waiting := sentences.backlog(report):
        tiles.append(("Waiting for a later run", f"{waiting:,}"))
    return tiles


def _line(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run's own line in the history of runs."""
    names = ("started_at", "wall_seconds", "status")
    return {"objects": report["totals"]["objects_in"], **{name: report[name] for name in names}}


def _rendered(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("compactor.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": _number,
        "bytes": human_bytes,
        "percent": _percent,
        "share": "{:.0%}".format,
        "dollars": dollar_text,
    }
    return made


def _shown(value: object) -> object:
    """Make text visible, and shorten bar lengths to two decimals."""
    if hasattr(value, "__html__"):
        # Output of a macro, already escaped.
        return value
    return f"{value:.2f}" if isinstance(value, float) else visible(str(value))


def _number(count: int) -> str:
    return f"{count:,}"


def _percent(value: float) -> str:
    return f"{value:.2f}%"
