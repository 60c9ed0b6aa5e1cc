"""VPC and transit gateway flow logs: a line of field names once, then rows.

Source: VPC flow log and transit gateway flow log records in the AWS documentation.
"""

from __future__ import annotations

import re

from compactor.formats.headed import FIRST_LINE, HeadedFramer, ended
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.model import Format, QuarantineReason

_LOOKED_AT_FOR_ROWS = 8 << 10
_SAMPLED_ROWS = 20
# A first line that can consist of names of flow log fields.
_LOWER_WORDS = re.compile(rb"[a-z \t\r\f\v-]*+(?:\n|\Z)")
_FIELD_NAMES = re.compile(rb"[a-z][a-z-]*(?: [a-z][a-z-]*)* ?\Z")
_FLOW_FIELDS = frozenset(
    b"""version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes
    start end action log-status vpc-id subnet-id instance-id tcp-flags type pkt-srcaddr
    pkt-dstaddr region az-id sublocation-type sublocation-id pkt-src-aws-service
    pkt-dst-aws-service flow-direction traffic-path ecs-cluster-arn ecs-cluster-name
    ecs-container-instance-arn ecs-container-instance-id ecs-container-id
    ecs-second-container-id ecs-service-name ecs-task-definition-arn ecs-task-arn ecs-task-id
    reject-reason resource-id encryption-status resource-type tgw-id tgw-attachment-id
    tgw-src-vpc-account-id tgw-dst-vpc-account-id tgw-src-vpc-id tgw-dst-vpc-id tgw-src-subnet-id
    tgw-dst-subnet-id tgw-src-eni tgw-dst-eni tgw-src-az-id tgw-dst-az-id tgw-pair-attachment-id
    packets-lost-no-route packets-lost-blackhole packets-lost-mtu-exceeded packets-lost-ttl-expired
    """.split()
)
_FLOW_KEY = "_vpcflowlogs_"
_FEWEST_FLOW_FIELDS = 3
_FEWEST_DOUBTFUL = 2
# Share of known names in a header if the key is a flow log's: AWS adds fields.
_LEAST_KNOWN = 1 / 2


def _recognise(look: Look) -> Detected | None:
    head = look.head
    if _FLOW_KEY not in look.key and not _LOWER_WORDS.match(head):
        return None
    line = FIRST_LINE.match(head)
    if line is None:
        return None
    if not _is_flow_header(line, look.key, head):
        _refuse_names(line[1].removesuffix(b"\r"), look)
        return None
    header = ended(line, complete=look.complete)
    look.require_text()
    return Detected(Format.VPC_FLOW, header)


def _refuse_names(line: bytes, look: Look) -> None:
    """Raise UnreadableSource (UNKNOWN_FORMAT) for a line that may consist of field names."""
    names = line.split()
    some = _FLOW_KEY in look.key or len(_FLOW_FIELDS.intersection(names)) >= _FEWEST_DOUBTFUL
    if some and _FIELD_NAMES.match(b" ".join(names)):
        seen = "its first line may be the names of fields of flow logs"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, look.head)


def _declared(look: Look) -> Detected:
    look.require_text()
    return Detected(Format.VPC_FLOW, ended(FIRST_LINE.match(look.head), complete=look.complete))


def _is_flow_header(found: re.Match[bytes], key: str, head: bytes) -> bool:
    line = found[1].removesuffix(b"\r")
    names = line.split()
    known = len(_FLOW_FIELDS.intersection(names))
    if known < _FEWEST_FLOW_FIELDS or len(set(names)) < len(names):
        return False
    if known < len(names) and not (
        _FLOW_KEY in key and known >= _LEAST_KNOWN * len(names) and _FIELD_NAMES.match(line)
    ):
        return False
    if b"\n" + line in head[found.end(1) :]:
        return False
    rows = head[found.end() : found.end() + _LOOKED_AT_FOR_ROWS].split(b"\n")[:_SAMPLED_ROWS]
    # The last row may be cut off.
    return all(len(row.split()) == len(names) for row in rows[:-1] if row.strip())


SPEC = FormatSpec(
    format=Format.VPC_FLOW,
    extension="log",
    media_type="text/plain",
    framer=lambda signature, _: HeadedFramer(signature.header),
    recognise=_recognise,
    declared=_declared,
    newlines=True,
    rows="log",
    hint="vpc_flow",
    named=r"_vpcflowlogs_[^/]*$",
)
