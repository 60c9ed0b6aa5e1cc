"""Whether the first line that several sources of text share is rather a header than a line.

What stands above a table begins each of its sources, and is nothing like the lines below. What
a program logged begins several sources by chance, or because it logs little else.
"""

from __future__ import annotations

from collections.abc import Iterator

from compactor.formats.documents import is_one_of
from compactor.formats.lines import BOM
from compactor.formats.log_lines import form_of
from compactor.formats.refusal import refused
from compactor.model import Quarantined, QuarantineReason, SourceObject

_LINE_BYTES = 1 << 10
_SAMPLE_BYTES = 8 << 10
# Of all samples; half of it for the first source that begins so, as most are the only one.
_HELD_BYTES = 16 << 20
_SAMPLES_EACH = 8
_BLANKS = b" \t\r\n"
_DELIMITERS = b",;|\t"


class SharedLines:
    """The first lines of the sources of one group, and samples of what follows them."""

    def __init__(self) -> None:
        self._sources: dict[bytes, list[SourceObject]] = {}
        self._samples: dict[bytes, list[bytes]] = {}
        self._held = 0

    def see(self, source: SourceObject, head: bytes) -> None:
        """Note how a source begins.

        Args:
            source: of lines of text.
            head: its first plain bytes, or all of them.
        """
        text = head[:_SAMPLE_BYTES].removeprefix(BOM).lstrip(_BLANKS)
        line = text[:_LINE_BYTES].partition(b"\n")[0].rstrip(_BLANKS)
        sources = self._sources.setdefault(line, [])
        sources.append(source)
        if len(sources) > _SAMPLES_EACH:
            return
        room = _HELD_BYTES if len(sources) > 1 else _HELD_BYTES // 2
        if self._held + len(text) <= room:
            self._held += len(text)
            self._samples.setdefault(line, []).append(text)

    def left_alone(self) -> Iterator[Quarantined]:
        """Those whose first line may be a header."""
        extended = self._extended()
        for line, sources in self._sources.items():
            is_shared = len(sources) > 1 or line in extended
            if is_shared and not self._is_one_of_the_lines(line):
                seen = f"{len(sources):,} sources begin with the same line, which may be a header"
                if line in extended:
                    seen = "it begins as another source does, with other columns, as a header may"
                detail = refused(QuarantineReason.UNKNOWN_FORMAT, seen, line).detail
                for source in sources:
                    yield Quarantined(source, QuarantineReason.UNKNOWN_FORMAT, detail)

    def _extended(self) -> set[bytes]:
        """First lines that are those of other sources with more columns, and these others."""
        found: set[bytes] = set()
        begun: list[bytes] = []
        for line in sorted(self._sources):
            while begun and not line.startswith(begun[-1]):
                begun.pop()
            for short in begun:
                if short and line[len(short)] in _DELIMITERS:
                    found |= {short, line}
            begun.append(line)
        return found

    def _is_one_of_the_lines(self, line: bytes) -> bool:
        samples = self._samples.get(line, [])
        if len(self._sources) == 1:
            # All begin alike, as below headers: nothing less than the line itself speaks for it.
            # As the last line of some alone it may be a header that was written once more.
            below = [_below(one.rstrip(_BLANKS)) for one in samples]
            return any(line in lines[:-1] for lines in below) or all(line in one for one in below)
        if form_of(line) or any(is_one_of(line, _below(one)) for one in samples):
            return True
        # Where it is all that such sources hold, and others hold another line each.
        alone = len(samples) == min(len(self._sources[line]), _SAMPLES_EACH)
        return (
            alone
            and all(one.rstrip(_BLANKS) == line for one in samples)
            and any(
                other != line and some[0].rstrip(_BLANKS) == other
                for other, some in self._samples.items()
            )
        )


def _below(text: bytes) -> list[bytes]:
    return [one.rstrip(_BLANKS) for one in text.split(b"\n")[1:]]
