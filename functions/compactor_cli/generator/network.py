"""VPC flow log records, version 2, with their header line.

Source of the field order: VPC user guide, "Flow log records".
"""

from __future__ import annotations

from random import Random

from compactor_cli.generator.arrivals import DAY_SECONDS
from compactor_cli.generator.drawing import Draw, address

HEADER = (
    "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes "
    "start end action log-status"
)

_POOL = 2_048
_AGGREGATION_SECONDS = 60
_PORTS = (443, 443, 443, 80, 22, 53, 3306, 5432, 6379, 123)
_INTERFACES = 12


class FlowRenderer:
    """Flow records, some 110 bytes each; a few are NODATA or SKIPDATA as in real logs."""

    separator = "\n"
    epilogue = "\n"

    def __init__(self, seed: int) -> None:
        rng = Random(f"network:{seed}")
        self._interfaces = [f"eni-0{rng.getrandbits(64):016x}" for _ in range(_INTERFACES)]
        self._flows = [_flow(rng) for _ in range(_POOL)]

    def prologue(self, draw: Draw) -> str:
        """The header line every flow log object starts with."""
        return HEADER + "\n"

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Flows that ended in the object's five minutes; packet counts and ports vary."""
        rng, account = draw.rng, draw.site.account
        midnight = draw.event_time - draw.event_time % DAY_SECONDS
        interfaces = rng.choices(self._interfaces, k=rows)
        flows = rng.choices(self._flows, k=rows)
        records = []
        for second, interface, flow in zip(draw.seconds(rows), interfaces, flows, strict=True):
            end = midnight + second
            head = f"2 {account} {interface}"
            times = f"{end - _AGGREGATION_SECONDS} {end}"
            if flow is None:
                records.append(f"{head} - - - - - - - {times} - {_silent(rng)}")
                continue
            addresses, port, action = flow
            packets = 1 + int(rng.random() * 90)
            size = packets * (40 + int(rng.random() * 1_400))
            source_port = 32_768 + int(rng.random() * 28_000)
            records.append(
                f"{head} {addresses} {source_port} {port} {packets} {size} {times} {action} OK"
            )
        return records


def _silent(rng: Random) -> str:
    return "SKIPDATA" if rng.random() < 0.1 else "NODATA"


def _flow(rng: Random) -> tuple[str, str, str] | None:
    if rng.random() < 0.02:
        return None
    port = rng.choice(_PORTS)
    protocol = 17 if port in (53, 123) else 6
    action = "REJECT" if rng.random() < 0.12 else "ACCEPT"
    return f"{address(rng)} {address(rng)}", f"{port} {protocol}", action
