"""pyiceberg's file access by the run's own store: same endpoint, credentials, retries, counts."""

from __future__ import annotations

import io
import uuid
import weakref
from types import TracebackType

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.typedef import EMPTY_DICT, Properties

from compactor.errors import AlreadyExists, InvalidInput, ObjectMissing
from compactor.ports import ObjectStore

STORE_PROPERTY = "s3-compactor.store"
# pyiceberg makes its FileIO itself, from strings only.
_stores: weakref.WeakValueDictionary[str, ObjectStore] = weakref.WeakValueDictionary()


def properties_of(store: ObjectStore) -> dict[str, str]:
    """Return the properties that make a catalog read and write its tables' files by this store.

    The store must outlive the catalog.
    """
    name = uuid.uuid4().hex
    _stores[name] = store
    return {
        "py-io-impl": f"{StoreFileIO.__module__}.{StoreFileIO.__qualname__}",
        STORE_PROPERTY: name,
    }


class StoreFileIO(FileIO):
    """Files of a table's metadata, each small enough to be held in memory."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._store = _stores[str(properties[STORE_PROPERTY])]

    def new_input(self, location: str) -> InputFile:
        """Return a file to read."""
        return _Input(location, self._store)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to write."""
        return _Output(location, self._store)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Do nothing: files are never deleted.

        pyiceberg deletes what it wrote for a commit that the catalog rejected. But if the response
        to a commit is lost and the HTTP client repeats it, the catalog rejects the second because
        the first succeeded: the files then belong to the table's current snapshot. Files that
        really are orphans are deleted by the table's own maintenance.
        """


class _Input(InputFile):
    def __init__(self, location: str, store: ObjectStore) -> None:
        super().__init__(location)
        self._store = store

    def __len__(self) -> int:
        head = self._store.head(*place_of(self.location))
        if head is None:
            raise FileNotFoundError(self.location)
        return head.size

    def exists(self) -> bool:
        return self._store.head(*place_of(self.location)) is not None

    def open(self, seekable: bool = True) -> InputStream:
        try:
            return io.BytesIO(self._store.get(*place_of(self.location)))
        except ObjectMissing:
            raise FileNotFoundError(self.location) from None


class _Output(OutputFile):
    def __init__(self, location: str, store: ObjectStore) -> None:
        super().__init__(location)
        self._store = store
        self._written: int | None = None

    def __len__(self) -> int:
        if self._written is None:
            return len(self.to_input_file())
        return self._written

    def exists(self) -> bool:
        return self._store.head(*place_of(self.location)) is not None

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._store)

    def create(self, overwrite: bool = False) -> OutputStream:
        return _Pending(self, overwrite=overwrite)

    def store(self, body: bytes, *, overwrite: bool) -> None:
        """Write the whole content."""
        place = place_of(self.location)
        if overwrite:
            self._store.put(*place, body)
        else:
            try:
                self._store.create(*place, body)
            except AlreadyExists:
                raise FileExistsError(self.location) from None
        self._written = len(body)


class _Pending(io.BytesIO):
    """Content being written, stored when it is closed; nothing is stored after an error."""

    def __init__(self, target: _Output, *, overwrite: bool) -> None:
        super().__init__()
        self._target = target
        self._overwrite = overwrite
        self._failed = False

    def close(self) -> None:
        if not self.closed and not self._failed:
            body = self.getvalue()
            super().close()
            self._target.store(body, overwrite=self._overwrite)
        super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._failed = error is not None
        self.close()

    def __del__(self) -> None:
        # Content that was not closed is incomplete.
        self._failed = True


def place_of(location: str) -> tuple[str, str]:
    """Return bucket and key of a file of a table.

    Raises:
        InvalidInput: it is not on S3.
    """
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in {"s3", "s3a", "s3n"} or not key:
        raise InvalidInput("table", location, "a table whose files are on S3")
    return bucket, key
