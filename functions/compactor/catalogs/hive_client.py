"""Requests to a Hive metastore, by the bindings of its Thrift protocol that pyiceberg carries.

A connection serves one request: threads share no connection, and none is left half read. A request
without an answer is sent again, a few times: whoever asks sends only what may be done twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from compactor.errors import CompactorError, InvalidInput, TransientStoreError
from compactor.settings.tables import TableAddress
from compactor.stores.translate import one_line

#: What a metastore says of a request that it understood and did not carry out.
REFUSALS = (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 60.0
# With their waits well below the time after which a late switch could do harm (readers/refresh.py).
_WAITS_SECONDS = (0.5, 2.0)
_DENIED = ("AccessControlException", "Permission denied", "not authorized", "AccessDenied")
_NO_FILES = "No FileSystem for scheme"
_T = TypeVar("_T")

# It logs each failed connection, one that cannot be resolved with a traceback; our error tells it.
logging.getLogger("thrift.transport.TSocket").setLevel(logging.CRITICAL)


class Metastore:
    """The metastore of one table.

    Args:
        address: of the table.
        wait: sleeps so many seconds.
        answer_seconds: how long an answer is waited for.
    """

    def __init__(
        self,
        address: TableAddress,
        wait: Callable[[float], None] = time.sleep,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        self._text = address.text
        parts = urlsplit(address.uri)
        self._host, self._port = parts.hostname, parts.port
        self._wait, self._answer_seconds = wait, answer_seconds

    def ask(self, what: str, call: Callable[[Any], _T]) -> _T:
        """Send a request that may be carried out twice.

        Args:
            what: is asked for, as errors tell it.
            call: is given the client.

        Raises:
            TransientStoreError: there was no answer.
            InvalidInput: what answers there is no metastore that can be asked this.
            REFUSALS: as the metastore raises them.
        """
        for wait in (*_WAITS_SECONDS, None):
            try:
                return self._answer(call)
            except TTransportException as error:
                if wait is None:
                    raise TransientStoreError(self._told(what, error)) from error
                self._wait(wait)
            except TProtocolException as error:
                accepted = f"a Hive metastore's Thrift port, without TLS: {one_line(error)}"
                raise InvalidInput("reader_table", self._text, accepted) from error
            except TApplicationException as error:
                raise self._misunderstood(what, error) from error
        raise AssertionError("the last try returns or raises")

    def judged(self, what: str, error: Exception) -> CompactorError:
        """What a refusal of a request that is about no single partition means to the caller."""
        told = self._told(what, error)
        if any(one in told for one in _DENIED):
            return InvalidInput("permission", told, "a metastore that may use this location")
        if _NO_FILES in told:
            accepted = f"a metastore that opens s3:// locations (fs.s3.impl): {one_line(error)}"
            return InvalidInput("reader_table", self._text, accepted)
        return TransientStoreError(told)

    # No context manager of contextlib: it writes to errors, and those of the bindings are frozen.
    def _answer(self, call: Callable[[Any], _T]) -> _T:
        socket = TSocket(self._host, self._port)
        socket.setTimeout(_CONNECT_SECONDS * 1000)
        transport = TBufferedTransport(socket)
        transport.open()
        try:
            socket.setTimeout(self._answer_seconds * 1000)
            # Strict: the first bytes of another protocol would be taken for a length to be read.
            return call(Client(TBinaryProtocol(transport, strictRead=True)))
        finally:
            transport.close()

    def _misunderstood(self, what: str, error: TApplicationException) -> CompactorError:
        if error.type == TApplicationException.UNKNOWN_METHOD:
            accepted = f"a Hive metastore of version 2.3 or later: {one_line(error)}"
            return InvalidInput("reader_table", self._text, accepted)
        return TransientStoreError(self._told(what, error))

    def _told(self, what: str, error: Exception) -> str:
        return f"{what} of {self._text}: {told(error)}"


def told(error: Exception) -> str:
    """What the metastore or the network says, in one line."""
    message = getattr(error, "message", None) or getattr(error, "inner", None) or error
    return one_line(f"{type(error).__name__}: {message}")
