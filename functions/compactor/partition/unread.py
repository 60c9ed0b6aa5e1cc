"""Sources of one partition that a run could not read, and tries again in its next run."""

from __future__ import annotations

from collections.abc import Iterable

from compactor.errors import InvalidInput
from compactor.log.counts import LeftAlone, added_up, count_left_alone
from compactor.log.state import QuarantineLine
from compactor.model import DENIED_REASONS, Quarantined
from compactor.partition.receipts import Receipt


class Unread:
    """What one call, and the calls of its run before it, could not read.

    Args:
        receipt: begins where that of the previous call ended.

    Attributes:
        before: by reason, up to the current window.
    """

    def __init__(self, receipt: Receipt) -> None:
        self.before: dict[str, LeftAlone] = dict(receipt.cursor.unread)
        self._receipt = receipt
        # Those of the current window, which the next call tries again.
        self._current: dict[bytes, Quarantined] = {}

    def add(self, sources: Iterable[Quarantined]) -> None:
        """Add sources of the current window."""
        self._current |= {unread.source.identity: unread for unread in sources}

    def end_window(self) -> None:
        """Keep those of a window in which nothing is left."""
        self.before = self.by_reason()
        self._note()
        self._current = {}

    def by_reason(self) -> dict[str, LeftAlone]:
        """Return all of them by reason."""
        current: dict[str, LeftAlone] = {}
        count_left_alone(current, self._current.values())
        return added_up([self.before, current])

    def close(self) -> None:
        """Write them into the receipt."""
        self._receipt.left_alone = self.by_reason()
        self._note()

    def require_few(self, bucket: str) -> None:
        """Require that at most one of them was denied, if nothing was ever read.

        Raises:
            InvalidInput: several were: the role must be changed, not the sources.
        """
        denied = [tally for reason, tally in self.by_reason().items() if reason in DENIED_REASONS]
        objects = sum(tally.objects for tally in denied)
        if objects > 1:
            example = f"s3://{bucket}/{denied[0].example}: {denied[0].detail}"
            accepted = f"a role that may read its sources: none of {objects} could be read"
            raise InvalidInput("permission", example, accepted)

    def _note(self) -> None:
        sources = self._current.values()
        lines = (
            QuarantineLine(unread.source.key, unread.reason, unread.detail) for unread in sources
        )
        self._receipt.quarantined += lines
