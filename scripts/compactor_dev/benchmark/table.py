"""What docs/performance.md shows of the results, and how it gets there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compactor_cli.markers import replace_between
from compactor_dev.benchmark.clients import CLIENTS, SEED, WORKER
from compactor_dev.benchmark.front import WITH_FAULTS
from compactor_dev.benchmark.load import CONNECTIONS
from compactor_dev.benchmark.results import Results, SetResult, times

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
HEADS = (
    "Client",
    "Latency",
    "Objects/s (min to max)",
    "Ratio",
    "MB/s",
    "CPU ms/object",
    "Peak MB",
    "Bytes out/in",
    "Records",
)


def render(results: Results) -> str:
    """Markdown: for each data set a table, and beside it what the server can give."""
    blocks = [_block(result) for result in results.values() if result.measurements]
    return "\n\n".join([*blocks, _notes(results)]) if blocks else "Not measured yet."


def regenerate(page: Path, results: Results) -> bool:
    """Put the table into docs/performance.md; False when it is missing, or has no markers."""
    try:
        text = page.read_text(encoding="utf-8")
        changed = replace_between(text, BEGIN, END, f"\n{render(results)}\n")
    except (FileNotFoundError, ValueError):
        return False
    if changed != text:
        page.write_text(changed, encoding="utf-8")
    return True


def _block(result: SetResult) -> str:
    lines = [f"**{result.title}**", "", _row(HEADS)]
    lines.append(_row([":---", ":---", *["---:"] * (len(HEADS) - 3), ":---"]))
    for lane in result.lanes:
        for client in result.clients:
            found = cells(result, client, lane)
            if found is not None:
                lines.append(_row(found))
    return "\n".join([*lines, "", _ceiling(result)])


def cells(result: SetResult, client: str, lane: str) -> list[str] | None:
    """One row, for :data:`HEADS`; None for a client that was not measured in this lane."""
    summary = result.summary(client, lane)
    if summary is None:
        return None
    ratio = times(summary, result.summary(SEED, lane))
    speed = summary.objects_per_second
    known = CLIENTS.get(client)
    return [
        (known.title if known else client) + ("" if summary.sample == result.objects else " ¹"),
        lane,
        f"{figure(speed.median)} ({figure(speed.low)} to {figure(speed.high)})",
        f"{figure(ratio)} x" if ratio is not None else "",
        figure(summary.mb_per_second),
        figure(summary.cpu_ms_per_object.median),
        f"{summary.peak_bytes / 1e6:,.0f}",
        f"{summary.size_ratio:.3f}",
        "equal" if summary.equal else "**differ**",
    ]


def _ceiling(result: SetResult) -> str:
    known = [
        f"{figure(one['gets_per_second'])} GET/s and"
        f" {figure(one['bytes_per_second'] / 1e6)} MB/s at {lane}"
        for lane, one in result.ceiling.items()
    ]
    known.append(f"uploads {figure(result.upload_bytes_per_second / 1e6)} MB/s")
    alone = f"The server alone: {'; '.join(known)} ({CONNECTIONS} connections, one upload)."
    return alone + _kept(result) + _again(result)


def _kept(result: SetResult) -> str:
    """What the worker keeps of its speed when answers fail or are late."""
    for lane in result.lanes:
        undisturbed = result.summary(WORKER, lane.removesuffix(WITH_FAULTS))
        kept = times(result.summary(WORKER, lane), undisturbed)
        if lane.endswith(WITH_FAULTS) and kept is not None:
            return f" With faults the worker keeps {kept:.0%} of its speed."
    return ""


def _again(result: SetResult) -> str:
    """What a second run over unchanged data asked for, by its own count."""
    for one in reversed(result.measurements):
        requests: Mapping[str, int] | None = one.detail.get("second_run_requests")
        if one.client == WORKER and requests is not None:
            made = ", ".join(f"{count} {name}" for name, count in sorted(requests.items()))
            return f" A second run over the unchanged set: {made}."
    return ""


def _notes(results: Results) -> str:
    newest = max(results.values(), key=lambda result: result.measured_at)
    machine = ", ".join(f"{name} {value}" for name, value in newest.machine.items())
    rounds = max(one.round for result in results.values() for one in result.measurements)
    return (
        f"Medians of {rounds} rounds, clients in turn; each in a fresh process, from its start to"
        " its published output, listing included. Ratio: to the one-at-a-time loop in the same"
        " lane. Latency: added before the first byte of every answer; faults: 1 % of answers are"
        " 503, 0.5 % half a second late. CPU: of the client alone. Clients and server share the"
        " processors. ¹ measured on the first objects only, because it is slow, and scaled."
        f"\n\nMeasured on {newest.measured_at[:10]} with {machine}."
    )


def figure(value: float) -> str:
    """Three significant digits, thousands apart: 5,230, 34.1, 0.169."""
    digits = max(0, 2 - _magnitude(value))
    return f"{round(value, 2 - _magnitude(value)):,.{digits}f}"


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2]) if value else 0


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
