"""Finds how many sources clean-up has deleted, from its records and receipts; reads only."""

from __future__ import annotations

from compactor.cleaning import clean_up_receipts as receipts
from compactor.cleaning.clean_up_records import read_record
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog
from compactor.model import is_run_id
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


class Deletions:
    """What clean-up recorded about its deletes in one state.

    Args:
        settings: settings that name the state.
        store: the store that holds it.
    """

    def __init__(self, settings: Settings, store: ObjectStore) -> None:
        self._settings = settings
        self._store = store
        self._refused: dict[str, frozenset[str]] = {}
        self._run_ids: list[str] | None = None

    def of(self, log: StoredLog, commit: Commit) -> int:
        """Return how many sources of a commit, at most, clean-up has deleted.

        A record has the count. Without one, a receipt with a refused source shows that clean-up
        requested the deletion of all of them. A clean-up that was killed between its deletes and
        its record leaves no trace until the next one, which writes the record.

        Raises:
            IntegrityError: the record is about another commit, or damaged.
        """
        if commit.sequence in log.cleaned:
            key = log.record_key_of(commit.sequence)
            return read_record(self._store, log.state.bucket, key, commit.commit_id).deleted
        refused = self._refused_in(log.path)
        return len(commit.sources) if any(source.key in refused for source in commit.sources) else 0

    def _refused_in(self, path: str) -> frozenset[str]:
        """Return the keys in a partition that receipts list as refused: the first 100 of each."""
        if path not in self._refused:
            partition = self._settings.partition_at(path)
            refused = (
                receipts.earlier(self._settings, run_id, partition, self._store).refusals
                for run_id in self._runs()
            )
            self._refused[path] = frozenset(
                refusal.key for refusals in refused for refusal in refusals
            )
        return self._refused[path]

    def _runs(self) -> list[str]:
        if self._run_ids is None:
            bucket, root = self._settings.layout.runs
            prefixes = (
                prefix for page in self._store.list_level(bucket, root) for prefix in page.prefixes
            )
            run_ids = (prefix[len(root) : -1] for prefix in prefixes)
            self._run_ids = [run_id for run_id in run_ids if is_run_id(run_id)]
        return self._run_ids
