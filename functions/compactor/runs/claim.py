"""What is asked of a partition's log before anything is stored or published for it.

None of it hangs on what the sources hold, so the first of them are read meanwhile. The upload of an
output is not created before it is known whose log will name it.
"""

from __future__ import annotations

from functools import partial

from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.state import LogState
from compactor.process.background import Background


class Claim:
    """One call's claim on a log.

    Args:
        log: of the partition.
        state: as it was loaded; changed while :meth:`beside` is at work.
    """

    def __init__(self, log: CommitLog, state: LogState) -> None:
        self._log = log
        self._state = state
        self._whole = False
        self._published_at = 0

    def identity(self, *, whole: bool = True) -> str:
        """Which log it is; a run with nothing to do never asks.

        Args:
            whole: the log must name every output that is there, which is asked once a call. What
                is built again is named already.

        Raises:
            IntegrityError: entries are gone, or the state is not the one that they name.
            InvalidInput: the state is that of another destination.
        """
        if whole and not self._whole:
            self._log.require_whole(self._state)
            self._log.settle_numbers(self._state)
            self._whole = True
        return self._log.claim(self._state)

    def unpublished(self) -> Commit | None:
        """The first commit of the log that is to be published still; None where all are.

        Where entries are gone, an output that none names may hold the same records: that is looked
        for first, and again once the log has grown.

        Raises:
            IntegrityError: there is such an output.
        """
        state = self._state
        if state.unpublished and self._published_at < state.last:
            self._log.require_whole(state)
            self._log.settle_numbers(state)
            self._published_at, self._whole = state.last, True
        return min(state.unpublished.values(), key=lambda one: one.sequence, default=None)

    def beside(self, *, whole: bool) -> Background[str]:
        """The same while a block goes on, and then whether the scheme is remembered.

        Raises:
            IntegrityError: at its end, as :meth:`identity`; or the scheme is gone.
            InvalidInput: likewise; or the destination was made of other partitions.
        """
        look = partial(self._log.look_at_scheme, self._state)
        return Background(partial(self.identity, whole=whole), look)
