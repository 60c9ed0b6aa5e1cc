"""Which sources no run compacts, whatever their content: decided by keys and settings alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from types import MappingProxyType

from compactor.model import SkipReason, SourceObject
from compactor.planning.markers import Roots, owner_of
from compactor.settings.settings import STATE_ROOT, Settings

# Query engines ignore such names, so writers use them for data that is not complete or not data.
_HIDDEN = re.compile(r"(?:^|/)[_.]")
_ICEBERG_METADATA = ".metadata.json"
_DIGEST = re.compile(r"/CloudTrail-Digest/|_CloudTrail-Digest_")


class KeyRules:
    """Decides by key why no run compacts a source.

    Args:
        settings: the run's settings.
        roots: prefixes that a table or registry owns.
    """

    def __init__(self, settings: Settings, roots: Roots = MappingProxyType({})) -> None:
        self._root_length = len(settings.source.root.prefix)
        # Read on every call, because roots may be added later.
        self._roots = roots
        self._spelled = _spelled_levels(settings)
        self._hidden_included = [
            (len(_HIDDEN.findall(pattern)), glob)
            for pattern, glob in zip(settings.include, _globs(settings.include), strict=True)
        ]
        self._include = _globs(settings.include)
        self._exclude = _globs(settings.exclude)
        self._own = (settings.destination, settings.state)

    def __call__(self, source: SourceObject) -> SkipReason | None:
        """Return the reason, or None if a run may compact the source."""
        owner = owner_of(source.key, self._roots) if self._roots else None
        return owner or self._by_name(source)

    def _by_name(self, source: SourceObject) -> SkipReason | None:
        relative = source.key[self._root_length :]
        # May be another destination's log: clean-up would delete its entries after compacting them.
        if source.key.startswith(STATE_ROOT):
            return SkipReason.OWN_STATE
        if any(o.bucket == source.bucket and source.key.startswith(o.prefix) for o in self._own):
            return SkipReason.OWN_STATE
        if _DIGEST.search(source.key):
            return SkipReason.CLOUDTRAIL_DIGEST
        if source.key.endswith(_ICEBERG_METADATA):
            # Their table may lie anywhere, and is lost without them.
            return SkipReason.TABLE
        if source.key.endswith("/") and not source.size:
            return SkipReason.DIRECTORY_MARKER
        return self._by_globs(relative)

    def _by_globs(self, relative: str) -> SkipReason | None:
        if self._include and not any(g.match(relative) for g in self._include):
            return SkipReason.NOT_INCLUDED
        if any(g.match(relative) for g in self._exclude):
            return SkipReason.EXCLUDED
        return SkipReason.HIDDEN if self._is_hidden(relative) else None

    def _is_hidden(self, relative: str) -> bool:
        if _HIDDEN.search(relative) is None:
            return False
        hidden = sum(
            name.startswith(("_", "."))
            and not (level < len(self._spelled) and self._spelled[level].startswith(("_", ".")))
            for level, name in enumerate(relative.split("/"))
        )
        # An include pattern applies only if it names at least as many hidden levels as the key has.
        return hidden > 0 and not any(
            named >= hidden and glob.match(relative) for named, glob in self._hidden_included
        )


def _spelled_levels(settings: Settings) -> tuple[str, ...]:
    """Return the first levels below the source as its wildcards and date format spell them."""
    return (*settings.source.pattern, *(settings.date_format or "").split("/"))


def _globs(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(translate(pattern)) for pattern in patterns)
