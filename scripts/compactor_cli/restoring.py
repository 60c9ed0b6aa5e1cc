"""Sources given back: each output is read once, and each source written once it is checked."""

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
    """One source given back.

    Attributes:
        path: where its bytes are now.
        form: what they are.
        attributes: what S3 kept beside them: ``encoding``, ``metadata`` and ``tags``, as far as
            there are any. Objects have them again; files cannot.
    """

    key: str
    etag: str
    path: str
    bytes: int
    form: Form
    attributes: Mapping[str, Any]


@dataclass(slots=True)
class _Work:
    """How much there is to do, and how much is done."""

    sources: int = 0
    wanted_bytes: int = 0
    done: int = 0
    done_bytes: int = 0

    def counted(self, pieces: Iterator[bytes], bar: Bar) -> Iterator[bytes]:
        """The pieces; the bar counts each."""
        for piece in pieces:
            self.done_bytes += len(piece)
            self.show(bar)
            yield piece

    def show(self, bar: Bar) -> None:
        of = f"{human_bytes(self.done_bytes)} of {human_bytes(self.wanted_bytes)}"
        bar.show(self.done, self.sources, of)


def restore_all(found: Search, places: Places, store: ObjectStore) -> Iterator[Restored]:
    """Write each source, its size and checksum checked before anybody sees it.

    Raises:
        InvalidInput: something would be written over; nothing was written then.
        IntegrityError: an output is gone or damaged; nothing is left of what it would give.
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
