"""Which sources no run takes, whatever they hold: what keys and settings alone decide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

from compactor.model import Partition, SkipReason, SourceObject
from compactor.settings.object_rules import ObjectRules
from compactor.settings.settings import STATE_ROOT, Settings

# What query engines pass over, such as _delta_log/ with the checkpoints of a table in it: the rows
# there are not rows of the data around it.
_HIDDEN = re.compile(r"(?:^|/)[_.]")
_DIGEST = re.compile(r"/CloudTrail-Digest/|_CloudTrail-Digest_")


class KeyRules:
    """Tells of sources of a partition why no run takes them."""

    def __init__(self, settings: Settings, partition: Partition) -> None:
        self._root_length = len(settings.source.root.prefix)
        self._include = _globs(settings.include)
        self._exclude = _globs(settings.exclude)
        self._policies = (
            ObjectRules(settings.rules, partition.bucket, partition.prefix)
            if settings.policies
            else None
        )
        self._rows = settings.columnar
        self._own = (settings.destination, settings.state)

    def __call__(self, source: SourceObject) -> SkipReason | None:
        """Why; None where a run may take it."""
        relative = source.key[self._root_length :]
        # A log of another destination, perhaps; clean-up would delete what was compacted of it.
        if source.key.startswith(STATE_ROOT):
            return SkipReason.OWN_STATE
        if any(o.bucket == source.bucket and source.key.startswith(o.prefix) for o in self._own):
            return SkipReason.OWN_STATE
        if _DIGEST.search(source.key):
            return SkipReason.CLOUDTRAIL_DIGEST
        if source.key.endswith("/") and not source.size:
            return SkipReason.DIRECTORY_MARKER
        if self._policies is not None and self._policies.of(source.key).rule.leave:
            return SkipReason.RULE
        return self._by_globs(relative)

    def _by_globs(self, relative: str) -> SkipReason | None:
        if self._include and not any(g.match(relative) for g in self._include):
            return SkipReason.NOT_INCLUDED
        if any(g.match(relative) for g in self._exclude):
            return SkipReason.EXCLUDED
        return SkipReason.HIDDEN if self._rows and _HIDDEN.search(relative) else None


def _globs(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(translate(pattern)) for pattern in patterns)
