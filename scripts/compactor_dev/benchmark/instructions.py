"""How many instructions a client executes, where the kernel and the machine count them.

Unlike its time they do not grow because others use the processor's caches and clock. Many virtual
machines have no such counter; then nobody counts, and nothing fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

# perf_event_open(2) has no wrapper in the C library; its numbers by architecture.
_SYSTEM_CALLS: Mapping[str, int] = {"x86_64": 298, "aarch64": 241}
_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING = 1, 2
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR, _ENABLE_ON_EXEC = (
    1 << bit for bit in (0, 1, 5, 6, 12)
)
_CLOSE_ON_EXEC = 8
_THIS_THREAD, _ANY_PROCESSOR, _NO_GROUP = 0, -1, -1
_READING = struct.Struct("=QQQ")


class Event(NamedTuple):
    """What is counted: ``type`` and ``config`` of perf_event_open(2)."""

    type: int
    config: int


# PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS
INSTRUCTIONS = Event(0, 1)


class _Attributes(ctypes.Structure):
    """The first published form of struct perf_event_attr, which every kernel takes."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup_events", ctypes.c_uint32),
        ("breakpoint_type", ctypes.c_uint32),
        ("breakpoint_address", ctypes.c_uint64),
    )


def opened(event: Event = INSTRUCTIONS) -> int | None:
    """A file descriptor of a counter; None where there is none, or this process may not count.

    It counts what programs execute in user space that this thread starts from now on, and what
    these start, but not this process itself: counting begins with a program's first instruction.
    """
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return None
    attributes = _Attributes(
        type=event.type,
        size=ctypes.sizeof(_Attributes),
        config=event.config,
        read_format=_TOTAL_TIME_ENABLED | _TOTAL_TIME_RUNNING,
        # The kernel's own instructions need a right that few have, and are others on each machine.
        flags=_DISABLED | _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR | _ENABLE_ON_EXEC,
    )
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    places = (ctypes.c_int(one) for one in (_THIS_THREAD, _ANY_PROCESSOR, _NO_GROUP))
    descriptor = int(
        call(
            ctypes.c_long(number), ctypes.byref(attributes), *places, ctypes.c_ulong(_CLOSE_ON_EXEC)
        )
    )
    return None if descriptor < 0 else descriptor


@contextlib.contextmanager
def counted(
    open_counter: Callable[[], int | None] = opened,
) -> Iterator[Callable[[], int | None]]:
    """Count what programs execute that are started within the block.

    Args:
        open_counter: gives a file descriptor to read from, or None.

    Yields:
        Tells how many so far; all of them once the programs have ended. None where nobody counts.
    """
    descriptor = open_counter()
    if descriptor is None:
        yield lambda: None
        return
    try:
        yield lambda: _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> int | None:
    count, enabled, running = _READING.unpack(os.read(descriptor, _READING.size))
    # A processor has few counters; where more are wanted, each has its share of the time.
    return round(count * enabled / running) if running else None
