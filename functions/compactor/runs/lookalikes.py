"""Sources that look like the content of a commit, and are not."""

from __future__ import annotations


class Unlike:
    """What was compared with all entries of a log, up to one of them.

    The next entry may have just that content: whoever trusts the comparison any longer compacts
    it twice.
    """

    def __init__(self) -> None:
        self._through = 0
        self._identities: set[bytes] = set()

    def add(self, identities: set[bytes], through: int) -> None:
        """Note sources that no entry up to this sequence has the content of."""
        if through != self._through:
            self._identities, self._through = set(), through
        self._identities |= identities

    def at(self, last: int) -> set[bytes]:
        """The identities of those that need not be compared while this is the newest entry."""
        return self._identities if last == self._through else set()
