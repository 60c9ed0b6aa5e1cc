"""Being written."""

from compactor.outputs.pending import PendingOutput
from compactor.rows.convert import Given


def merge(given: Given) -> PendingOutput:
    """To be replaced."""
    raise NotImplementedError
