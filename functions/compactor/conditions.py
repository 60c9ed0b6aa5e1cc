"""The request conditions that the guarantees depend on, and what replaces each if a store lacks it.

This module does no I/O: :mod:`compactor.probe.probe` tests a store, and stores follow their
:class:`StoreTraits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from compactor.errors import InvalidInput

# The endpoints of AWS in all its partitions, VPC and dual-stack endpoints included.
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".amazonaws.eu")


class Condition(StrEnum):
    """A request condition, or a guarantee about responses. The value is its displayed name."""

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
    """How a store treats a condition.

    REFUSED: the store answers the request with an error whether or not the condition holds.
    """

    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe found out about one condition.

    Attributes:
        detail: the store's message if it refused; otherwise empty.
    """

    condition: Condition
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StoreTraits:
    """What a store can be relied on to do. The defaults are AWS, which honours everything.

    Attributes:
        reads_if_match: a GET may rely on If-Match; otherwise each response must carry the ETag.
        refuses_other_etags: a response whose ETag differs from the listing is rejected, however
            it was requested. False only for the probe, which tests If-Match itself.
        copies: server-side copies are used; otherwise their bytes pass through the worker.
        refuses_wrong_crc32: an upload is not published if its bytes do not have the CRC32 sent
            with its completion; otherwise each output is read back after it is published.
        knows_copied_crc32: HEAD returns the right CRC32 for an output with copied parts.
        deletes_many: DeleteObjects honours ETags; otherwise sources are deleted one by one.
        deletes_one: DeleteObject honours If-Match; otherwise HEAD is compared just before.
    """

    reads_if_match: bool = True
    copies: bool = True
    refuses_wrong_crc32: bool = True
    knows_copied_crc32: bool = True
    deletes_many: bool = True
    deletes_one: bool = True
    refuses_other_etags: bool = True


class _Without(msgspec.Struct, frozen=True):
    """What follows if a condition is not honoured.

    Attributes:
        danger: what could happen. Shown if the run ends, or if a race remains.
        instead: what is done instead; empty if there is no safe alternative.
        races: whether the alternative leaves a race.
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
    """Return whether an endpoint belongs to AWS, which guarantees every condition."""
    host = urlsplit(endpoint_url).hostname or ""
    return host.endswith(_AWS_DOMAINS)


def consequence(finding: Finding) -> str:
    """Return what follows from a finding, in words; empty if the condition is honoured."""
    if finding.verdict is Verdict.HONOURED:
        return ""
    without = _WITHOUT[finding.condition]
    if ends_runs(finding):
        return f"no run: {_danger(finding)}"
    return f"{without.instead}, and {without.danger}" if without.races else without.instead


def require_safe(findings: Iterable[Finding], endpoint_url: str) -> None:
    """Check that each condition is honoured or has a safe alternative.

    Raises:
        InvalidInput: one is not and has none; the message names it and the danger.
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
    """Return one line for each missing condition whose alternative leaves a race."""
    return tuple(
        f"this store {_VERBS[finding.verdict]} {finding.condition}: {consequence(finding)}"
        for finding in findings
        if finding.verdict is not Verdict.HONOURED
        and not ends_runs(finding)
        and _WITHOUT[finding.condition].races
    )


def traits_of(findings: Iterable[Finding]) -> StoreTraits:
    """Return the traits that follow from findings; conditions without one count as honoured."""
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
    """Return whether a finding makes every run unsafe."""
    if finding.verdict is Verdict.HONOURED:
        return False
    if finding.condition is Condition.WHOLE_CHECKSUM:
        # Ignored: outputs can be read back. Refused: no output can be published.
        return finding.verdict is Verdict.REFUSED
    return not _WITHOUT[finding.condition].instead


def _danger(finding: Finding) -> str:
    if finding.condition is Condition.WHOLE_CHECKSUM:
        return "no output could be published"
    return _WITHOUT[finding.condition].danger
