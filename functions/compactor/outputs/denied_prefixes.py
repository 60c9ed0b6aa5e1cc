"""Whether one source may not be read, or whole prefixes: told apart by a few sources more."""

from __future__ import annotations

from collections.abc import Sequence

from compactor.errors import CompactorError, NothingReadable, UnreadableSource
from compactor.model import DENIED_REASONS, SourceObject
from compactor.ports import ObjectStore

# So many sources at the start of a group, and then so many spread over the rest of it.
DENIED_IN_A_ROW = 20


class Denials:
    """Counts the sources of a group that this role may not read, until it has read one.

    Args:
        sources: of the group, in the order in which they are read.
        store: where they are.
    """

    def __init__(self, sources: Sequence[SourceObject], store: ObjectStore) -> None:
        self._sources = sources
        self._store = store
        self._denied = 0
        self._looking = True

    def read(self) -> None:
        """One was read: what is denied, is denied source by source."""
        self._looking = False

    def count(self, error: UnreadableSource) -> None:
        """One was not.

        Raises:
            NothingReadable: nor was any before it, nor may those be read that were tried
                behind it.
        """
        if error.reason not in DENIED_REASONS:
            # Its bytes came, or would come from here: it lies in an archive tier.
            self._looking = False
        self._denied += 1
        if self._looking and self._denied == DENIED_IN_A_ROW:
            self._looking = False
            self._look_behind(error)

    def _look_behind(self, error: UnreadableSource) -> None:
        rest = [source for source in self._sources[DENIED_IN_A_ROW:] if source.size]
        step = -(-len(rest) // DENIED_IN_A_ROW) or 1
        for source in rest[::step]:
            try:
                self._store.read_range(source, 0, 1)
            except UnreadableSource as behind:
                if behind.reason in DENIED_REASONS:
                    continue
                return
            except CompactorError:
                # It changed: whoever reads it next will see.
                return
            return
        first = self._sources[0]
        raise NothingReadable(f"s3://{first.bucket}/{first.key}", error.reason, error.detail)
