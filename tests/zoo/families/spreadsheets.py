"""CSV and TSV as spreadsheets, libraries and devices write them."""

from __future__ import annotations

import csv
import io

from tests.zoo.kinds import HEADED, ROWS, Kind, rows
from tests.zoo.readers import document, lines, table

_RFC_URL = "https://www.rfc-editor.org/rfc/rfc4180"
_EXCEL_URL = "https://support.microsoft.com/en-us/office/import-or-export-text-txt-or-csv-files-5250ac4c-663c-47ce-937b-339e391393ba"
_PANDAS_URL = "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_csv.html"
_PYTHON_URL = "https://docs.python.org/3/library/csv.html"
_rows = table(header=False)


def _written(rows, **form) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, **form).writerows(rows)
    return out.getvalue()


def _order(c) -> list[object]:
    return [c.randrange(9999), c.word(), c.at("%Y-%m-%d"), f"{c.random():.2f}"]


_NAMES = ["order_id", "bought_by", "ordered_at", "amount"]


def _orders(c) -> list[list[object]]:
    return [_order(c) for _ in range(c.randint(2, 8))]


def _headed_breaks(c):
    rows = [[n, f'say "{c.word()}",\ntwo lines', "a"] for n in range(4)]
    return _written([["id", "comment", "kind"], *rows], lineterminator="\n")


def _header_alone(c):
    rows = _orders(c) if c.number % 2 else []
    return _written([_NAMES, *rows], lineterminator="\n")


def _headers_change(c):
    names = [*_NAMES[:3], "total"] if c.number > 2 else _NAMES
    return _written([names, *_orders(c)], lineterminator="\n")


def _open_headed(c):
    text = "id,size,note\n" + c.rows(lambda: f"{c.randrange(99)},1,ok")
    return text + ('7,2,"cut "" off' if c.number % 2 else "")


def _cut_crlf(c):
    text = _written([_NAMES, *_orders(c)])
    return text.removesuffix("\n") if c.number == 2 else text


def _excel_semicolons(c):
    rows = [[n, c.word(), f"{n},5"] for n in range(1, 6)]
    return _written([["id", "name", "amount"], *rows], delimiter=";")


def _excel_sep(c):
    rows = [[n, c.word()] for n in range(1, 5)]
    return "sep=;\r\n" + _written([["id", "name"], *rows], delimiter=";")


def _excel_ansi(c):
    rows = [[n, f"{c.word()} für Müller", "5€"] for n in range(4)]
    return _written([["id", "name", "price"], *rows]).encode("cp1252")


def _excel_unicode(c):
    text = _written([_NAMES, *_orders(c)], delimiter="\t")
    return b"\xff\xfe" + text.encode("utf-16-le")


def _logger(c):
    head = (
        '"TOA5","station","CR1000X","1234","std.02","prog","1","Hourly"\n"TIMESTAMP","RECORD","T"\n'
        '"TS","RN","Deg C"\n"","","Avg"\n'
    )
    return head + c.rows(lambda: f'"{c.at("%Y-%m-%d %H:%M:%S")}",{c.randrange(9)},20.1')


def _two_tables(c):
    rows = c.rows(lambda: f"{c.word()},{c.randrange(9)}", 2, 3)
    return f"name,count\n{rows}\ntotal\n42\n"


def _total(c):
    rows = [[c.word(), c.randrange(99)] for _ in range(3)]
    return _written([["name", "count"], *rows, ["Total", 42]])


# fmt: off
KINDS = (
    Kind("CSV with a header", ".csv", table(), _RFC_URL,
         lambda c: c.unended(_written([_NAMES, *_orders(c)], lineterminator="\n")),
         declared=HEADED),
    Kind("CSV with a header, CRLF", ".csv", table(), _RFC_URL,
         lambda c: c.unended(_written([_NAMES, *_orders(c)]), "\r\n"), declared=HEADED),
    Kind("CSV with a header and quoted line breaks", ".csv", table(), _RFC_URL, _headed_breaks,
         declared=HEADED),
    Kind("CSV with a header, some without rows", ".csv", table(), _RFC_URL, _header_alone,
         declared=HEADED),
    Kind("CSV with a header and no row anywhere", ".csv", table(), _RFC_URL,
         lambda c: _written([_NAMES], lineterminator="\n"), declared=HEADED),
    Kind("CSV with changing headers", ".csv", table(), _RFC_URL, _headers_change, declared=HEADED),
    Kind("CSV of words, a header above", ".csv", table(), _RFC_URL,
         lambda c: "name,city\n" + c.rows(lambda: f"{c.word()},{c.word()}"), declared=HEADED),
    Kind("CSV of words, no header", ".csv", _rows, _RFC_URL,
         lambda c: "name,city\n" + c.rows(lambda: f"{c.word()},{c.word()}"), declared=ROWS),
    Kind("CSV of one equal row", ".csv", _rows, _RFC_URL, lambda c: "web-1,OK,healthy\n",
         declared=ROWS),
    Kind("CSV whose last quote is open", ".csv", _rows, _RFC_URL,
         lambda c: '1,5" disk\n2,"cut off here' if c.number == 1 else c.rows(lambda: "3,ok"),
         declared=ROWS, expected="joined, open_quote"),
    Kind("CSV with a header whose last quote is open", ".csv", table(), _RFC_URL, _open_headed,
         declared=HEADED, expected="joined, open_quote"),
    Kind("CSV that ends between CR and LF", ".csv", table(), _RFC_URL, _cut_crlf,
         declared=HEADED, expected="joined, malformed_document"),
    Kind("CSV with a blank first line", ".csv", table(), _RFC_URL,
         lambda c: "\n" + _written([_NAMES, *_orders(c)], lineterminator="\n"),
         declared=HEADED, expected="malformed_document"),
    Kind("CSV with comments above", ".csv", document, _PANDAS_URL,
         lambda c: (f"# made {c.iso()}\n# by {c.word()}\n" + _written(
         [_NAMES, *_orders(c)], lineterminator="\n")),
         declared=HEADED, expected="malformed_document"),
    Kind("CSV of Classic Mac OS", ".csv", table(), _EXCEL_URL,
         lambda c: _written([_NAMES, *_orders(c)], lineterminator="\r"),
         declared=HEADED, expected="malformed_document"),
    Kind("Excel CSV UTF-8", ".csv", table(), _EXCEL_URL,
         lambda c: ("\ufeff" + _written([["Bestell_Nr", "Kunde", "Größe"],
                              *([n, c.word(), n + 0.5] for n in range(4))])), declared=HEADED),
    Kind("Excel CSV with semicolons", ".csv", table(";"), _EXCEL_URL, _excel_semicolons,
         declared={"format": "csv", "header": True, "delimiter": ";"}),
    Kind("Excel CSV with a sep line", ".csv", document, _EXCEL_URL, _excel_sep,
         declared={"format": "csv", "header": True, "delimiter": ";"},
         expected="malformed_document"),
    Kind("Excel CSV, Windows-1252", ".csv", table(), _EXCEL_URL, _excel_ansi,
         declared={"format": "csv", "header": True, "encoding": "single_byte"}),
    Kind("Excel Unicode text", ".txt", document, _EXCEL_URL, _excel_unicode,
         expected="unknown_encoding"),
    Kind("TSV with a header", ".tsv", table("\t", quotes=False),
         "https://www.iana.org/assignments/media-types/text/tab-separated-values",
         lambda c: ("id\tname\tseen_at\n" + c.rows(
         lambda: f"{c.randrange(99)}\t{c.word()}\t{c.iso()}")),
         declared={"format": "tsv", "header": True, "quote": "none"}),
    Kind("TSV without a header, equal first rows", ".tsv", table("\t", header=False, quotes=False),
         "https://www.iana.org/assignments/media-types/text/tab-separated-values",
         lambda c: "alpha\thealth\tok\n" + c.rows(lambda: f"{c.word()}\thealth\tok"),
         declared={"format": "tsv", "header": False, "quote": "none"}),
    Kind("pandas with numbers for columns", ".csv", table(), _PANDAS_URL,
         lambda c: ",0,1\n" + "".join(f"{n},{c.random():.3f},{n}.5\n" for n in range(5)),
         declared=HEADED),
    Kind("CSV by Python, everything quoted", ".csv", table(), _PYTHON_URL,
         lambda c: _written([_NAMES, *_orders(c)], quoting=csv.QUOTE_ALL), declared=HEADED),
    Kind("CSV with escaped quotes", ".csv", lines,
         "https://dev.mysql.com/doc/refman/8.4/en/load-data.html",
         rows(lambda c: f'"{c.randrange(99)}","5\\" {c.word()}","\\N"'),
         declared={"format": "csv", "header": False, "escape": "backslash"}),
    Kind("CSV of one column of words", ".csv", _rows, _RFC_URL,
         lambda c: "healthy\n" + c.rows(c.word), declared=ROWS),
    Kind("CSV of a data logger", ".csv", document,
         "https://help.campbellsci.com/cr1000x/cr1000x/data-tables/toa5-ascii-file-format.htm",
         _logger, declared=HEADED, expected="malformed_document"),
    Kind("CSV of two tables", ".csv", document, _RFC_URL, _two_tables,
         declared=HEADED, expected="malformed_document"),
    Kind("CSV with a total below", ".csv", table(), _EXCEL_URL, _total, declared=HEADED),
    Kind("CSV with a header and NULs", ".csv", table(), _RFC_URL,
         lambda c: "id,name\n" + c.rows(lambda: f"{c.randrange(99)},a\0b"),
         declared=HEADED, expected="binary"),
    Kind("Pipe-separated with a header", ".csv", table("|"), _PYTHON_URL,
         lambda c: "id|name|state\n" + c.rows(lambda: f"{c.randrange(99)}|{c.word()}|ok"),
         declared={"format": "csv", "header": True, "delimiter": "|"}),
    Kind("CSV named .txt", ".txt", table(), _RFC_URL,
         lambda c: _written([_NAMES, *_orders(c)], lineterminator="\n"), declared=HEADED),
    Kind("Open data, GTFS stop times", "stop_times.csv", table(),
         "https://gtfs.org/documentation/schedule/reference/",
         lambda c: ("trip_id,arrival_time,departure_time,stop_id,stop_sequence\n" + c.rows(lambda: (
          f"{c.hexes(6)},{c.at('%H:%M:%S')},{c.at('%H:%M:%S')},S{c.word()},1"))), declared=HEADED),
    Kind("CSV with its header repeated", ".csv", table(), _RFC_URL,
         lambda c: "id,name\n1,a\nid,name\n" + c.rows(lambda: f"{c.randrange(99)},{c.word()}"),
         declared=HEADED, expected="malformed_document"),
    Kind("CSV, declared with another delimiter", ".csv", table(";"), _RFC_URL,
         lambda c: "id;name;price\n" + c.rows(lambda: f"1;{c.word()};2,5") + "2;b;3\n",
         declared=HEADED, expected="malformed_document"),
)
# fmt: on
