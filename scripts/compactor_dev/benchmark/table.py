"""What docs/performance.md shows of the results, and how it gets there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from compactor_cli.markers import replace_between
from compactor_dev.benchmark.clients import CLIENTS, LOOP, SEED, WORKER
from compactor_dev.benchmark.front import WITH_FAULTS
from compactor_dev.benchmark.load import CONNECTIONS
from compactor_dev.benchmark.results import Results, SetResult, Spread, disturbance, ratio

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
HEADS = (
    "Client",
    "Lane",
    "CPU ms/object (min to max)",
    "user + kernel",
    "Instructions/object",
    "Objects/s (min to max)",
    "CPU / loop's",
    "Objects/s / loop's",
    "Objects/s / one at a time's",
    "MB/s",
    "Peak MB",
    "Bytes out/in",
    "Records",
)
_TEXTS = ("Client", "Lane", "Records")


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
    heads, rows = rows_of(result)
    aligned = [":---" if head in _TEXTS else "---:" for head in heads]
    lines = [f"**{result.title}**", "", *map(_row, (heads, aligned, *rows)), "", _ceiling(result)]
    disturbed = disturbance(result)
    return "\n".join(lines if disturbed is None else [*lines, "", disturbed])


def rows_of(result: SetResult) -> tuple[list[str], list[list[str]]]:
    """Heads, and a row for each client in each lane; columns without any figure are left out."""
    pairs = [(client, lane) for lane in result.lanes for client in result.clients]
    rows = [row for pair in pairs if (row := cells(result, *pair)) is not None]
    filled = [place for place in range(len(HEADS)) if any(row[place] for row in rows)]
    return [HEADS[place] for place in filled], [[row[place] for place in filled] for row in rows]


def cells(result: SetResult, client: str, lane: str) -> list[str] | None:
    """One row, for :data:`HEADS`; None for a client that was not measured in this lane."""
    summary = result.summary(client, lane)
    if summary is None:
        return None
    known = CLIENTS.get(client)
    executed = summary.instructions_per_object
    return [
        (known.title if known else client) + ("" if summary.sample == result.objects else " ¹"),
        lane,
        spread(summary.cpu_ms_per_object),
        parts(summary.user_ms_per_object, summary.kernel_ms_per_object),
        figure(executed) if executed is not None else "",
        spread(summary.objects_per_second),
        *_beside(result, client, lane),
        figure(summary.mb_per_second),
        f"{summary.peak_bytes / 1e6:,.0f}",
        f"{summary.size_ratio:.3f}",
        "equal" if summary.equal else "**differ**",
    ]


def _beside(result: SetResult, client: str, lane: str) -> tuple[str, str, str]:
    """CPU and speed beside the bare loop, and speed beside one at a time."""
    loop, seed = (
        result.ratio(client, other, lane) if client != other else None for other in (LOOP, SEED)
    )
    return (
        spread(loop.cpu) if loop else "",
        spread(loop.speed) if loop else "",
        spread(seed.speed) if seed else "",
    )


def sentences(result: SetResult) -> list[str]:
    """What the worker is beside the bare loop and beside one at a time, lane by lane."""
    said = []
    for lane in result.lanes:
        loop, seed = (result.ratio(WORKER, other, lane) for other in (LOOP, SEED))
        if loop is not None:
            said.append(
                f"{lane}: the worker takes {spread(loop.cpu)} times the bare loop's CPU an object"
                f" and has {spread(loop.speed)} times its objects/s."
            )
        if seed is not None:
            said.append(f"{lane}: it is {spread(seed.speed)} times as fast as one at a time.")
    return said


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
        undisturbed = result.rounds(WORKER, lane.removesuffix(WITH_FAULTS))
        kept = ratio(result.rounds(WORKER, lane), undisturbed)
        if lane.endswith(WITH_FAULTS) and kept is not None:
            return f" With faults the worker keeps {kept.speed.median:.0%} of its speed."
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
        f"Medians of {rounds} rounds. In a round the clients of a lane run one after the other, in"
        " another order each round; each in a fresh process, from its start to its published"
        " output, listing included. CPU: of the client alone and what it started; the kernel knows"
        " it exactly, and its two parts by samples. Ratios: formed within each round, median and"
        " extremes; the loop is the bare one of obstore, which checks, counts and commits nothing."
        " Latency: added before the first byte of every answer; faults: 1 % of answers are 503,"
        " 0.5 % half a second late; TLS: the server's side of it is on the same processors."
        " Clients and server share the processors. ¹ measured on the first objects only, because"
        " it is slow, and scaled."
        f"\n\nMeasured on {newest.measured_at[:10]} with {machine}."
    )


def spread(found: Spread) -> str:
    """``0.210 (0.198 to 0.221)``; of one round the figure alone."""
    if found.low == found.high:
        return figure(found.median)
    return f"{figure(found.median)} ({figure(found.low)} to {figure(found.high)})"


def parts(one: float, other: float) -> str:
    """``0.255 + 0.096``: as exact as :func:`figure` of their sum."""
    places = 2 - _magnitude(one + other)
    return f"{_rounded(one, places)} + {_rounded(other, places)}"


def figure(value: float) -> str:
    """Three significant digits, thousands apart: 5,230, 34.1, 0.169."""
    return _rounded(value, 2 - _magnitude(value))


def _rounded(value: float, places: int) -> str:
    return f"{round(value, places):,.{max(0, places)}f}"


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2]) if value else 0


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
