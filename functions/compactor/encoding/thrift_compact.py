"""A reader of the Thrift compact protocol, as far as Parquet footers need it.

The protocol is defined in ``thrift-compact-protocol.md`` of Apache Thrift. Fields that are not
requested are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

_DEEPEST = 64
# Types of values in the compact protocol. A boolean field has its value in the type, and no bytes.
TRUE, BYTE = 1, 3
_BOOLEANS = (TRUE, 2)
_NUMBERS = (4, 5, 6)
BINARY, LIST, MAP, STRUCT = 8, 9, 11, 12
_LISTS = (LIST, 10)
_FIXED = {TRUE: 0, 2: 0, BYTE: 1, 7: 8}
Fields = Mapping[int, Callable[[int], None]]


class CompactReader:
    """Reads values in sequence. The callback of a field is passed its type and reads the value.

    Every method raises ValueError or IndexError if the bytes are invalid.

    Attributes:
        at: number of bytes read so far.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self._depth = 0

    def size_of_structs(self, kind: int) -> int:
        """Read the header of a list of structs and return the list's length."""
        self.require(kind, LIST)
        size, inner = self.list_header()
        # An empty list may name any type.
        if size:
            self.require(inner, STRUCT)
        return size

    def struct(self, fields: Fields) -> None:
        """Read a struct and pass the requested fields to their callbacks."""
        self._deeper()
        number = 0
        while (head := self.byte()) != 0:
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._zigzag()
            fields.get(number, self.skip)(kind)
        self._depth -= 1

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("nested too deep")

    def skip(self, kind: int) -> None:
        """Skip a value."""
        if kind in _NUMBERS:
            self._varint()
        elif kind == BINARY:
            self._pass(self._varint())
        elif kind in _LISTS:
            self._skip_list()
        elif kind == STRUCT:
            self.struct({})
        elif kind == MAP:
            # FileMetaData has no maps; an empty one is a single byte.
            if self._varint():
                raise ValueError("a map, where none belongs")
        elif kind in _FIXED:
            self._pass(_FIXED[kind])
        else:
            raise ValueError("a value of an unknown kind")

    def _skip_list(self) -> None:
        self._deeper()
        size, kind = self.list_header()
        if kind in _BOOLEANS:
            self._pass(size)
        else:
            for _ in range(size):
                self.skip(kind)
        self._depth -= 1

    def list_header(self) -> tuple[int, int]:
        """Read the length and type of a list. Each element takes at least one byte."""
        head = self.byte()
        size = head >> 4
        if size == 15:
            size = self._varint()
        if size > len(self.data) - self.at:
            raise ValueError("a list longer than the footer")
        return size, head & 15

    def require(self, kind: int, expected: int) -> None:
        """Raise ValueError unless a value has the expected type."""
        if kind != expected:
            raise ValueError("a value of another kind")

    def byte(self) -> int:
        """Read one byte."""
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def number(self, kind: int) -> int:
        """Read a signed integer."""
        if kind not in _NUMBERS:
            raise ValueError("a value of another kind")
        return self._zigzag()

    def binary(self, kind: int) -> bytes:
        """Read bytes with their length before them."""
        self.require(kind, BINARY)
        length = self._varint()
        start = self.at
        self._pass(length)
        return self.data[start : self.at]

    def _pass(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise IndexError("a value past the end")
