"""The report as one page without scripts; every value from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape as html_escape
from typing import Any

from compactor.shown import visible
from compactor.sizes import human_bytes

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #1c2430 }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid #dde3ea }
th:first-child, td:first-child { text-align: left; word-break: break-all }
.failed { color: #b3261e } .succeeded { color: #146c2e }
"""


def render(report: Mapping[str, Any]) -> str:
    """HTML of a run report, given as the dictionary that ``report.json`` holds."""
    status = escape(str(report["status"]))
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        f"<title>Compaction {escape(str(report['run_id']))}</title><style>{_STYLE}</style>",
        f"<h1>Compaction run {escape(str(report['run_id']))}: ",
        f"<span class='{status}'>{status}</span></h1>",
        f"<p>Started {escape(str(report['started_at']))}, ",
        f"{escape(str(report['settings']['s3_source_uri']))} to ",
        f"{escape(str(report['settings']['s3_destination_uri']))}</p>",
        _headline(report["headline"]),
        _failure(report),
        _warnings(report.get("warnings", ())),
        _totals(report),
        _resting(report.get("resting")),
        _partitions(report),
        _skips(report["skipped"]),
        _left_alone(report["left_alone"]),
        _quarantined(report["partitions"]),
        _overwritten(report["overwritten"]),
        _oversized(report["oversized"]),
        _of_table(report.get("table")),
        _clean_up(report["clean_up"]),
    ]
    return "".join(parts) + "</html>"


def escape(text: str) -> str:
    """Text for the page: no markup of its own, and nothing in it that cannot be seen."""
    return html_escape(visible(text))


def _headline(line: str) -> str:
    return f"<p class='failed'>{escape(line)}</p>" if line else ""


def _left_alone(left: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            reason,
            f"{one['objects']:,}",
            human_bytes(one["bytes"]),
            one["example"],
            one["detail"],
            one["setting"],
        )
        for reason, one in left.items()
    ]
    heads = ("Reason", "Sources", "Bytes", "Such as", "What was seen", "Setting")
    return f"<h2>Left alone for what they hold</h2>{_table(heads, rows)}" if rows else ""


def _failure(report: Mapping[str, Any]) -> str:
    failed = [p for p in report["partitions"] if p["status"] != "done"]
    lines = [line for line in (report["failure"], report["spark_failure"]) if line]
    lines += [f"{p['path'] or '(root)'}: {p['error']} {p['cause']}" for p in failed]
    table = report.get("table") or {"error": "", "cause": "", "faults": ()}
    ended = [f"{table['error']}: {table['cause']}"] if table["error"] else []
    lines += [f"table: {line}" for line in (*ended, *table["faults"])]
    clean_up = report["clean_up"] or {"failures": (), "unsafe": ()}
    lines += [f"clean-up: {line}" for line in (*clean_up["failures"], *clean_up["unsafe"])]
    lines += [f"clean-up: {n:,} more {kind}" for kind, n in clean_up.get("left_out", {}).items()]
    if report["failed_count"] > len(failed):
        lines.append(f"and {report['failed_count'] - len(failed):,} more partitions")
    items = "".join(f"<li>{escape(str(line))}</li>" for line in lines)
    return f"<h2 class='failed'>What failed</h2><ul>{items}</ul>" if items else ""


def _warnings(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(str(line))}</li>" for line in lines)
    return f"<h2>Warnings</h2><ul>{items}</ul>" if items else ""


def _totals(report: Mapping[str, Any]) -> str:
    totals = report["totals"]
    requests = ", ".join(f"{v:,} {escape(k)}" for k, v in sorted(totals["requests"].items()))
    rows = [
        ("Partitions", f"{report['partition_count'] + _at_rest(report):,}", ""),
        ("Objects", f"{totals['objects_in']:,}", f"{totals['objects_out']:,}"),
        ("Bytes", human_bytes(totals["bytes_in"]), human_bytes(totals["bytes_out"])),
        (
            "Average size",
            human_bytes(totals["bytes_in"] / max(1, totals["objects_in"])),
            human_bytes(totals["bytes_out"] / max(1, totals["objects_out"])),
        ),
        (
            "Records",
            f"{totals['records'] + totals['rejected']:,}",
            f"{totals['records']:,}",
        ),
    ]
    if totals["rejected"]:
        rows.append(("Records that did not fit, rejected", "", f"{totals['rejected']:,}"))
    table = _table(("", "Before", "After"), rows)
    return f"<h2>In all</h2>{table}<p>Requests: {requests}</p>"


def _at_rest(report: Mapping[str, Any]) -> int:
    # Reports of earlier versions have none.
    return int(report.get("resting", {}).get("partitions", 0))


def _resting(resting: Mapping[str, Any] | None) -> str:
    if not resting or not resting["partitions"]:
        return ""
    counts = f"{resting['partitions']:,} with {resting['objects']:,} objects"
    return f"<p>Partitions at rest, not looked at further: {counts}</p>"


def _partitions(report: Mapping[str, Any]) -> str:
    partitions, spark = report["partitions"], frozenset(report["spark"])
    rows: list[Sequence[str]] = [
        (
            p["path"] or "(root)",
            f"{p['status']}, Spark" if p["path"] in spark else p["status"],
            f"{p['counts']['objects_in']:,}",
            f"{p['counts']['objects_out']:,}",
            human_bytes(p["counts"]["bytes_in"]),
            human_bytes(p["counts"]["bytes_out"]),
            f"{p['counts']['records']:,}",
            f"{p['counts']['seconds']:.1f}",
        )
        for p in partitions
    ]
    others = report["partition_count"] - len(partitions)
    if others > 0:
        rows.append(_others(report, others))
    heads = ("Partition", "", "Objects", "After", "Bytes", "After", "Records", "Seconds")
    return f"<h2>Partitions</h2>{_table(heads, rows)}"


def _others(report: Mapping[str, Any], others: int) -> tuple[str, ...]:
    """What the partitions come to that are not told one by one."""
    told = [one["counts"] for one in report["partitions"]]
    rest = {
        name: report["totals"][name] - sum(one[name] for one in told)
        for name in ("objects_in", "objects_out", "bytes_in", "bytes_out", "records", "seconds")
    }
    failed = report["failed_count"] - sum(one["status"] != "done" for one in report["partitions"])
    return (
        f"{others:,} others",
        f"{failed:,} failed" if failed else "done",
        f"{rest['objects_in']:,}",
        f"{rest['objects_out']:,}",
        human_bytes(rest["bytes_in"]),
        human_bytes(rest["bytes_out"]),
        f"{rest['records']:,}",
        f"{rest['seconds']:.1f}",
    )


def _skips(skipped: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (reason, f"{s['objects']:,}", human_bytes(s["bytes"]), ", ".join(s["examples"]))
        for reason, s in sorted(skipped.items())
    ]
    heads = ("Reason", "Objects", "Bytes", "Such as")
    return f"<h2>Left alone by the rules</h2>{_table(heads, rows)}" if rows else ""


def _overwritten(found: Mapping[str, Any]) -> str:
    if not found["objects"]:
        return ""
    told = f"{found['objects']:,} objects ({human_bytes(found['bytes'])}), such as"
    keys = escape(", ".join(found["examples"]))
    return f"<h2>Compacted beside other content of the same key</h2><p>{told} {keys}</p>"


def _quarantined(partitions: Iterable[Mapping[str, Any]]) -> str:
    rows = [(q["key"], q["reason"], q["detail"]) for p in partitions for q in p["quarantined"]]
    heads = ("Source", "Reason", "Detail")
    return f"<h2>Quarantined sources</h2>{_table(heads, rows)}" if rows else ""


def _oversized(paths: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(path or '(root)')}</li>" for path in paths)
    return f"<h2>Oversized partitions, left for Spark</h2><ul>{items}</ul>" if items else ""


# What becomes of a record that is merged into a table.
_BECAME = ("inserted", "updated", "deleted", "superseded", "stale")


def _of_table(table: Mapping[str, Any] | None) -> str:
    if table is None:
        return ""
    names = {
        "outputs": "Outputs brought into it",
        "rows": "Rows of them",
        "commits": "Commits of the table",
        "conflicts": "Commits of others that came first",
        "last": "Entries of the table log that are in it",
    }
    rows = [("Table", table["table"]), ("Status", table["status"])]
    rows += [(label, f"{table[name]:,}") for name, label in names.items()]
    upserts = table.get("upserts") or {}
    rows += [
        (f"Records {name}", f"{count:,}") for name, count in upserts.items() if name in _BECAME
    ]
    rows.append(("Its version then", table["at"]))
    return f"<h2>Table</h2>{_table(('', ''), rows)}"


def _clean_up(clean_up: Mapping[str, Any] | None) -> str:
    if clean_up is None:
        return ""
    requests = ", ".join(f"{v:,} {escape(k)}" for k, v in sorted(clean_up["requests"].items()))
    names = {
        "partitions": "Partitions past retention",
        "commits": "Commits",
        "deleted": "Sources deleted",
        "changed": "Keys where another object stands now, left alone",
        "refused": "Sources that S3 did not delete",
        "markers": "Deletes that left a noncurrent version",
        "uploads_aborted": "Unfinished uploads aborted",
    }
    rows = [(label, f"{clean_up[name]:,}") for name, label in names.items()]
    rows.insert(3, ("Bytes deleted", human_bytes(clean_up["deleted_bytes"])))
    warnings = "".join(f"<li>{escape(str(line))}</li>" for line in clean_up["warnings"])
    refused = [(one["key"], one["reason"]) for one in clean_up["refusals"]]
    return "".join(
        (
            f"<h2>Clean-up</h2>{_table(('', ''), rows)}<p>Requests: {requests}</p>",
            f"<ul>{warnings}</ul>" if warnings else "",
            _table(("Not deleted", "Reason"), refused) if refused else "",
        )
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
