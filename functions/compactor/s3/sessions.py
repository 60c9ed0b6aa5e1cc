"""botocore sessions: one per client, so that credentials and settings are looked up once.

By default, creating a session takes 10 ms of CPU and an S3 client 30 ms more, nearly all of it to
find and read botocore's service descriptions. :class:`_Descriptions` is faster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import botocore.session
import msgspec
from botocore.loaders import JSONFileLoader, Loader
from isal import isal_zlib

from compactor.errors import InvalidInput

_GZIP = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_session_of: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def new_session() -> Any:
    """Return a session that finds region, credentials and endpoints as boto3 does."""
    session: Any = botocore.session.get_session()
    described = _descriptions(session.get_config_variable("data_path"))
    session.register_component("data_loader", described)
    return session


def made_by(session: Any, client: Any) -> Any:
    """Remember which session made a client, and return the client."""
    _session_of[client] = session
    return client


def session_of(client: Any) -> Any:
    """Return the session that made a client; a new one if the client was made elsewhere."""
    session = _session_of.get(client)
    if session is None:
        session = _session_of[client] = new_session()
    return session


def ca_bundle(session: Any) -> str | None:
    """Return the file of certificates that botocore is configured to trust; None for the default.

    That is ``AWS_CA_BUNDLE``, a profile's ``ca_bundle``, or else ``REQUESTS_CA_BUNDLE``.

    Raises:
        InvalidInput: the file does not exist.
    """
    path = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
    if path and not Path(path).is_file():
        names = "AWS_CA_BUNDLE, ca_bundle or REQUESTS_CA_BUNDLE"
        raise InvalidInput(names, path, "a file of certificates, PEM")
    return path or None


class _Files(JSONFileLoader):
    """Reads description files in a third to half of the time of botocore's loader."""

    def load_file(self, file_path: str) -> Any:
        plain, packed = Path(f"{file_path}.json"), Path(f"{file_path}.json.gz")
        if plain.is_file():
            return msgspec.json.decode(plain.read_bytes())
        if packed.is_file():
            return msgspec.json.decode(isal_zlib.decompress(packed.read_bytes(), _GZIP))
        return None


class _Descriptions(Loader):
    """Finds the descriptions of services."""

    FILE_LOADER_CLASS = _Files

    def list_available_services(self, type_name: str) -> list[str]:
        """Return the services that have a directory.

        botocore also looks for a file of the type in each of the 440 directories. Here, a missing
        file is only noticed when it is needed.
        """
        there = (path for path in map(Path, self.search_paths) if path.is_dir())
        return sorted({one.name for path in there for one in os.scandir(path) if one.is_dir()})


def _descriptions(data_path: str | None) -> _Descriptions:
    """Return a loader that looks below ``AWS_DATA_PATH`` first, as botocore's does.

    As with botocore, sessions do not share a loader: clients modify some of what it returns.
    """
    given = data_path.split(os.pathsep) if data_path else []
    return _Descriptions([_expanded(path) for path in given])


def _expanded(path: str) -> str:
    return os.path.expanduser(os.path.expandvars(path))  # noqa: PTH111 - it never raises
