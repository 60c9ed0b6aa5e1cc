"""Restores sources: reads each output once, and writes each source after it was checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compactor.outputs.restore import require_bytes, restore
from compactor.ports import ObjectStore
from compactor.sizes import human_bytes
from compactor_cli.chosen import Search
from compactor_cli.console import Bar, progress
from compactor_cli.restored_files import Form, Places, row_bytes


@dataclass(frozen=True, slots=True)
class Restored:
    """One restored source.

    Attributes:
        path: path or URI of the restored bytes.
        form: what they are.
        attributes: ``encoding``, ``metadata`` and ``content_type`` of the source, where it had any.
            Restored objects have them again; files cannot.
    """

    key: str
    etag: str
    path: str
    bytes: int
    form: Form
    attributes: Mapping[str, Any]


@dataclass(slots=True)
class _Work:
    """Progress of a restore."""

    sources: int = 0
    wanted_bytes: int = 0
    done: int = 0
    done_bytes: int = 0

    def counted(self, pieces: Iterator[bytes], bar: Bar) -> Iterator[bytes]:
        """Yield the pieces and show them on the bar."""
        for piece in pieces:
            self.done_bytes += len(piece)
            self.show(bar)
            yield piece

    def show(self, bar: Bar) -> None:
        of = f"{human_bytes(self.done_bytes)} of {human_bytes(self.wanted_bytes)}"
        bar.show(self.done, self.sources, of)


def restore_all(found: Search, places: Places, store: ObjectStore) -> Iterator[Restored]:
    """Write each source after checking its size and checksum; yields each restored one.

    Raises:
        InvalidInput: something would be overwritten; nothing was written.
        IntegrityError: an output is missing or damaged; nothing was written from it.
    """
    work = _Work()
    with progress("searching the commit logs"):
        for one in found.commits():
            require_bytes(one)
            for row in one.rows:
                places.add(row)
                work.sources += 1
                work.wanted_bytes += row_bytes(row)
        places.check()
    with progress("restoring", work.sources) as bar:
        for one in found.commits():
            for row, pieces in restore(one, store):
                written = places.write(row, work.counted(pieces, bar))
                work.done += 1
                work.show(bar)
                source = row.source
                yield Restored(
                    source.key,
                    source.etag,
                    written.where,
                    written.bytes,
                    written.form,
                    {} if row.attributes is None else row.attributes.as_dict(),
                )
        places.finish()
