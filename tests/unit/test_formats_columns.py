"""What CSV and TSV declarations are checked against."""

from __future__ import annotations

import pytest

from compactor.errors import UnreadableSource
from compactor.formats.declaration import parse_formats
from compactor.formats.detect import detect
from tests.support.world import World


@pytest.mark.parametrize("first", [b"sep=;\r\n", b"SEP=,\n", b'"sep=;"\n', b"sep=\t\n"])
def test_a_separator_line_of_excel_is_no_header(first):
    (declaration,) = parse_formats([{"format": "csv", "header": True, "delimiter": ";"}])
    source = first + b"id;name\r\n1;a\r\n"
    with pytest.raises(UnreadableSource, match="sep= line"):
        detect(source, "a.csv", complete=True, declaration=declaration)
    detect(b"sep;name\n1;a\n", "a.csv", complete=True, declaration=declaration)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_blank_line_above_the_only_row_shows_its_line_end(end):
    world = World(formats=[{"format": "csv", "header": False}])
    world.put("a.csv", end + b"1,2")
    world.put("b.csv", b"3,4" + end)
    world.run()
    (output,) = world.store.contents("lake", "compacted/").values()
    assert output == end + b"1,2" + end + b"3,4" + end


@pytest.mark.parametrize("header", [True, False])
def test_few_blank_lines_are_a_source_without_records_and_many_are_left_alone(header):
    world = World(formats=[{"format": "csv", "header": header}])
    world.put("a.csv", b"id,name\n1,2\n")
    world.put("b.csv", b"\n" * 64)
    world.put("c.csv", b"\r\n" * 40_000)
    receipt = world.run()
    assert (receipt.counts.objects_in, receipt.counts.quarantined) == (2, 1)
    (line,) = receipt.quarantined
    assert line.key.endswith("c.csv")
    assert "nothing but blank lines" in line.detail
    (output,) = world.store.contents("lake", "compacted/").values()
    assert output == b"id,name\n1,2\n"
