"""The first line of VPC flow logs: names of fields."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Fields of VPC flow logs, as the AWS documentation lists them (versions 2 to 5).
_FLOW_NAMES = frozenset(
    re.findall(
        r"\S+",
        """version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes
        start end action log-status vpc-id subnet-id instance-id tcp-flags type""",
    )
)
_FLOW_NAME = re.compile(r"[a-z]+(?:-[a-z]+)*")
_FEWEST_FLOW_NAMES = 3


def names_flow_fields(line: Sequence[str]) -> bool:
    """Names of fields and nothing else, those that AWS documents among them."""
    named = all(_FLOW_NAME.fullmatch(name) for name in line)
    enough = len(line) >= _FEWEST_FLOW_NAMES and len(set(line)) == len(line)
    return enough and named and len(_FLOW_NAMES.intersection(line)) >= 2
