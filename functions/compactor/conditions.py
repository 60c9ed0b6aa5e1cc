"""What the promises stand on: conditions a store may honour, and what to do where it does not.

A pure account: :mod:`compactor.probe.probe` asks a store, and stores act by their
:class:`StoreTraits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from compactor.errors import InvalidInput

# The endpoints of AWS in all its partitions; VPC endpoints and dual stack included.
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".amazonaws.eu")


class Condition(StrEnum):
    """A condition of a request, or a promise about answers; the value is its name for people."""

    CREATE = "If-None-Match on PutObject"
    LIST = "what was written, in ListObjectsV2"
    READ = "If-Match on GetObject"
    PUBLISH = "If-None-Match on CompleteMultipartUpload"
    WHOLE_CHECKSUM = "the full-object CRC32 on CompleteMultipartUpload"
    HEAD_CHECKSUM = "the CRC32 in HeadObject"
    COPY = "CopySourceIfMatch on UploadPartCopy"
    COPIED_CHECKSUM = "the CRC32 kept of an output with copied parts"
    DELETE_MANY = "the ETag of each key in DeleteObjects"
    DELETE_ONE = "If-Match on DeleteObject"


DELETE_CONDITIONS = frozenset({Condition.DELETE_MANY, Condition.DELETE_ONE})


class Verdict(StrEnum):
    """What a store made of a condition.

    REFUSED is for stores that answer the request itself with an error, condition kept or not.
    """

    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe found of one condition.

    Attributes:
        detail: the store's words, where it refused; empty otherwise.
    """

    condition: Condition
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StoreTraits:
    """Which ways are safe at a store. By default those of AWS, which honours everything.

    Attributes:
        reads_if_match: a GET may rely on If-Match; else each answer must carry the ETag.
        refuses_other_etags: an answer with another ETag than was listed is rejected,
            whatever it was asked by; only who tries what If-Match does takes it.
        copies: server-side copies are used; else what would be copied passes through the worker.
        refuses_wrong_crc32: no upload is published whose bytes do not have the CRC32 that came
            with its completion; else each output is read back once it is published.
        knows_copied_crc32: the CRC32 that HEAD returns for an output with copied parts is right.
        deletes_many: DeleteObjects honours ETags; else sources are deleted one by one.
        deletes_one: DeleteObject honours If-Match; else HEAD is compared just before.
    """

    reads_if_match: bool = True
    copies: bool = True
    refuses_wrong_crc32: bool = True
    knows_copied_crc32: bool = True
    deletes_many: bool = True
    deletes_one: bool = True
    refuses_other_etags: bool = True


class _Without(msgspec.Struct, frozen=True):
    """What follows where a condition is not honoured.

    Attributes:
        danger: what could happen; reported where the run ends, or where a race stays open.
        instead: the way that is taken; empty where there is none that is safe.
        races: that way leaves a moment open.
    """

    danger: str
    instead: str = ""
    races: bool = False


_WITHOUT: Mapping[Condition, _Without] = {
    Condition.CREATE: _Without(
        "two concurrent runs could write over each other's commits, and double records"
    ),
    Condition.LIST: _Without(
        "a run would not see the commits of the one before, and compact their sources again"
    ),
    Condition.READ: _Without(
        "a source could change between its listing and its read",
        "the ETag of each answer is compared with the listed one",
    ),
    Condition.PUBLISH: _Without("two concurrent runs could publish over each other's outputs"),
    Condition.WHOLE_CHECKSUM: _Without(
        "an output that was damaged on its way can be read until that is noticed",
        "each output is read back once it is published, and compared",
        races=True,
    ),
    Condition.HEAD_CHECKSUM: _Without(
        "a checksum proves no output",
        "outputs are proven by the ETag of their parts, or read",
    ),
    Condition.COPY: _Without(
        "a source could change between its listing and its copy",
        "large sources pass through the worker instead of being copied",
    ),
    Condition.COPIED_CHECKSUM: _Without(
        "readers that check would refuse outputs with copied parts",
        "large sources pass through the worker instead of being copied",
    ),
    Condition.DELETE_MANY: _Without(
        "content written after the commit could be deleted",
        "sources are deleted one by one, each by DeleteObject with If-Match",
    ),
    Condition.DELETE_ONE: _Without(
        "a source that is overwritten between the two is deleted all the same",
        "HEAD is compared just before each delete",
        races=True,
    ),
}


RACING_DELETES = (
    f"this store does not honour {Condition.DELETE_ONE}: {_WITHOUT[Condition.DELETE_ONE].instead},"
    f" and {_WITHOUT[Condition.DELETE_ONE].danger}"
)


def is_aws(endpoint_url: str) -> bool:
    """True for endpoints of AWS itself, which promises every condition."""
    host = urlsplit(endpoint_url).hostname or ""
    return host.endswith(_AWS_DOMAINS)


def consequence(finding: Finding) -> str:
    """What follows from a finding, in words; empty where the condition is honoured."""
    if finding.verdict is Verdict.HONOURED:
        return ""
    without = _WITHOUT[finding.condition]
    if ends_runs(finding):
        return f"no run: {_danger(finding)}"
    return f"{without.instead}, and {without.danger}" if without.races else without.instead


def require_safe(findings: Iterable[Finding], endpoint_url: str) -> None:
    """Do nothing where each condition is honoured, or has a safe way without it.

    Raises:
        InvalidInput: one has not; the message names it, and what could happen.
    """
    for finding in findings:
        if ends_runs(finding):
            detail = f" ({finding.detail})" if finding.detail else ""
            act = "ignores" if finding.verdict is Verdict.IGNORED else "refuses"
            accepted = (
                f"a store that honours {finding.condition}: this one {act} it{detail}, so that"
                f" {_danger(finding)}"
            )
            raise InvalidInput("endpoint", endpoint_url, accepted)


def warnings_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One line for each condition without which a moment stays open."""
    return tuple(
        f"this store {_VERBS[finding.verdict]} {finding.condition}: {consequence(finding)}"
        for finding in findings
        if finding.verdict is not Verdict.HONOURED
        and not ends_runs(finding)
        and _WITHOUT[finding.condition].races
    )


def traits_of(findings: Iterable[Finding]) -> StoreTraits:
    """The ways that are safe, given these findings; a condition without one counts as honoured."""
    missing = {one.condition for one in findings if one.verdict is not Verdict.HONOURED}
    copied_crc32 = Condition.COPIED_CHECKSUM not in missing
    return StoreTraits(
        reads_if_match=Condition.READ not in missing,
        copies=copied_crc32 and Condition.COPY not in missing,
        refuses_wrong_crc32=Condition.WHOLE_CHECKSUM not in missing,
        knows_copied_crc32=copied_crc32,
        deletes_many=Condition.DELETE_MANY not in missing,
        deletes_one=Condition.DELETE_ONE not in missing,
    )


_VERBS = {Verdict.HONOURED: "honours", Verdict.IGNORED: "ignores", Verdict.REFUSED: "refuses"}


def ends_runs(finding: Finding) -> bool:
    """True where nothing is safe without the condition that was not honoured."""
    if finding.verdict is Verdict.HONOURED:
        return False
    if finding.condition is Condition.WHOLE_CHECKSUM:
        # Ignored: outputs can be read back. Refused: there are none.
        return finding.verdict is Verdict.REFUSED
    return not _WITHOUT[finding.condition].instead


def _danger(finding: Finding) -> str:
    if finding.condition is Condition.WHOLE_CHECKSUM:
        return "no output could be published"
    return _WITHOUT[finding.condition].danger
