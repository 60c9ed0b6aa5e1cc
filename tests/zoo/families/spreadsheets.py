"""CSV and TSV as spreadsheets, libraries and devices write them."""

from __future__ import annotations

import csv
import io

from tests.zoo.families.text import EITHER, JOINED, LEFT, kind
from tests.zoo.readers import commented, document, excel, lines, table

_RFC = "RFC 4180: Common Format and MIME Type for CSV Files"
_RFC_URL = "https://www.rfc-editor.org/rfc/rfc4180"
_EXCEL = "Import or export text (.txt or .csv) files (Excel)"
_EXCEL_URL = "https://support.microsoft.com/en-us/office/import-or-export-text-txt-or-csv-files-5250ac4c-663c-47ce-937b-339e391393ba"
_PANDAS = "pandas.DataFrame.to_csv"
_PANDAS_URL = "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_csv.html"
_PYTHON = "csv: CSV File Reading and Writing (Python)"
_PYTHON_URL = "https://docs.python.org/3/library/csv.html"
_rows = table(header=False)


def _written(rows, **form) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, **form).writerows(rows)
    return out.getvalue()


def _order(chance) -> list[object]:
    return [chance.randrange(9999), chance.word(), chance.at("%Y-%m-%d"), f"{chance.random():.2f}"]


_NAMES = ["order_id", "bought_by", "ordered_at", "amount"]


def _orders(chance) -> list[list[object]]:
    return [_order(chance) for _ in range(chance.randint(2, 8))]


@kind("CSV with a header", page=_RFC, url=_RFC_URL, reader=table(), verdict=JOINED, ending=".csv")
def _headed(chance):
    return chance.unended(_written([_NAMES, *_orders(chance)], lineterminator="\n"))


@kind("CSV with a header, CRLF", page=_RFC, url=_RFC_URL, reader=table(), verdict=JOINED,
      ending=".csv")  # fmt: skip
def _headed_crlf(chance):
    return chance.unended(_written([_NAMES, *_orders(chance)]), "\r\n")


@kind("CSV with a header and quoted line breaks", page=_RFC, url=_RFC_URL, reader=table(),
      verdict=JOINED, ending=".csv")  # fmt: skip
def _headed_breaks(chance):
    rows = [[n, f'say "{chance.word()}",\ntwo lines', "a"] for n in range(4)]
    return _written([["id", "comment", "kind"], *rows], lineterminator="\n")


@kind("CSV with a declared header", page=_RFC, url=_RFC_URL, reader=table(), verdict=JOINED,
      ending=".csv", given={"csv_header": "present"})  # fmt: skip
def _header_declared(chance):
    return "host,2024,2025\n" + chance.rows(lambda: f"{chance.host()},{chance.word()},ok")


@kind("CSV with a header, some without rows", page=_RFC, url=_RFC_URL, reader=table(),
      verdict=EITHER, ending=".csv")  # fmt: skip
def _header_alone(chance):
    rows = _orders(chance) if chance.number % 2 else []
    return _written([_NAMES, *rows], lineterminator="\n")


@kind("CSV with a header and no row anywhere", page=_RFC, url=_RFC_URL, reader=table(),
      verdict=EITHER, ending=".csv")  # fmt: skip
def _header_only(chance):
    del chance
    return _written([_NAMES], lineterminator="\n")


@kind("CSV with changing headers", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _headers_change(chance):
    names = [*_NAMES[:3], "total"] if chance.number > 2 else _NAMES
    return _written([names, *_orders(chance)], lineterminator="\n")


@kind("CSV with years for names", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _years(chance):
    return "host,2024,2025\n" + chance.rows(lambda: f"{chance.host()},{chance.randrange(99)},1")


@kind("CSV of words, a header above", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _words_headed(chance):
    return "name,city\n" + chance.rows(lambda: f"{chance.word()},{chance.word()}")


@kind("CSV of words, no header", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _words_only(chance):
    return "name,city\n" + chance.rows(lambda: f"{chance.word()},{chance.word()}")


@kind("CSV without a header, health checks", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _health(chance):
    return "10.0.0.1,GET,/health\n" + chance.rows(
        lambda: f"{chance.ip()},GET,{chance.path()}", 1, 4
    )


@kind("CSV of one equal row", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _one_row(chance):
    del chance
    return "web-1,OK,healthy\n"


@kind("CSV of equal rows, declared headerless", page=_RFC, url=_RFC_URL, reader=_rows,
      verdict=JOINED, ending=".csv", given={"csv_header": "absent"})  # fmt: skip
def _one_row_declared(chance):
    return "web-1,OK,healthy\n" * (1 + chance.number % 2)


@kind("CSV of status words", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _status(chance):
    return "web,OK,healthy\n" + chance.rows(
        lambda: f"{chance.word()},{chance.choice(('OK', 'FAILED'))},{chance.word()}", 1, 4
    )


@kind("CSV without a header, other dates", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _dates(chance):
    forms = ("%m/%d/%Y,%H:%M:%S", "%Y%m%dT%H%M%SZ,a", "%d.%m.%Y,b", "%d-%b-%y,c")
    form = forms[chance.number % 4]
    return "01/01/2026,00:00:00,start\n" + chance.rows(lambda: f"{chance.at(form)},{chance.word()}")


@kind("CSV without a header, UUIDs", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _uuids(chance):
    return "11111111-1111-4111-a111-111111111111,start\n" + chance.rows(
        lambda: f"{chance.id()},{chance.word()}"
    )


@kind("CSV without a header, booleans and nulls", page=_RFC, url=_RFC_URL, reader=_rows,
      verdict=EITHER, ending=".csv")  # fmt: skip
def _booleans(chance):
    return "true,null,up\n" + chance.rows(lambda: f"{chance.choice(('true', 'false'))},NULL,down")


@kind("CSV without a header, numbers", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _numbers(chance):
    return chance.rows(lambda: f"{chance.unix()},{chance.random():.3f},{chance.word()}")


@kind("CSV whose last quote is open", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _open(chance):
    return '1,5" disk\n2,"cut off here' if chance.number == 1 else chance.rows(lambda: "3,ok")


@kind("CSV with a header whose last quote is open", page=_RFC, url=_RFC_URL, reader=table(),
      verdict=EITHER, ending=".csv")  # fmt: skip
def _open_headed(chance):
    text = "id,size,note\n" + chance.rows(lambda: f"{chance.randrange(99)},1,ok")
    return text + ('7,2,"cut "" off' if chance.number % 2 else "")


@kind("TSV with a header whose last quote is open", page=_RFC, url=_RFC_URL, reader=table("\t"),
      verdict=EITHER, ending=".tsv")  # fmt: skip
def _open_tabs(chance):
    text = "id\tsize\tnote\n" + chance.rows(lambda: f"{chance.randrange(99)}\t1\tok")
    return text + ('7\t2\t"cut off' if chance.number % 2 else "")


@kind("CSV that ends between CR and LF", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _cut_crlf(chance):
    text = _written([_NAMES, *_orders(chance)])
    return text.removesuffix("\n") if chance.number == 2 else text


@kind("CSV with a blank first line", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _blank(chance):
    return "\n" + _written([_NAMES, *_orders(chance)], lineterminator="\n")


@kind("CSV with comments above", page=_PANDAS + ": comment lines read by read_csv(comment=)",
      url=_PANDAS_URL, reader=commented, verdict=EITHER, ending=".csv")  # fmt: skip
def _comments(chance):
    return f"# made {chance.iso()}\n# by {chance.word()}\n" + _written(
        [_NAMES, *_orders(chance)], lineterminator="\n"
    )


@kind("CSV of Classic Mac OS", page=_EXCEL + ": CSV (Macintosh)", url=_EXCEL_URL, reader=table(),
      verdict=LEFT, ending=".csv")  # fmt: skip
def _macintosh(chance):
    return _written([_NAMES, *_orders(chance)], lineterminator="\r")


@kind("CSV of Classic Mac OS, no header", page=_EXCEL + ": CSV (Macintosh)", url=_EXCEL_URL,
      reader=_rows, verdict=LEFT, ending=".csv")  # fmt: skip
def _macintosh_rows(chance):
    return _written(_orders(chance), lineterminator="\r")


@kind("Excel CSV UTF-8", page=_EXCEL, url=_EXCEL_URL, reader=table(), verdict=JOINED,
      ending=".csv")  # fmt: skip
def _excel_utf8(chance):
    return "\ufeff" + _written([["Bestell_Nr", "Kunde", "Größe"],
                                *([n, chance.word(), n + 0.5] for n in range(4))])  # fmt: skip


@kind("Excel CSV with semicolons", page=_EXCEL, url=_EXCEL_URL, reader=table(";"), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _excel_semicolons(chance):
    rows = [[n, chance.word(), f"{n},5"] for n in range(1, 6)]
    return _written([["id", "name", "amount"], *rows], delimiter=";")


@kind("Excel CSV with semicolons, quote open", page=_EXCEL, url=_EXCEL_URL, reader=table(";"),
      verdict=EITHER, ending=".csv")  # fmt: skip
def _excel_open(chance):
    text = _written([["id", "name"], *([n, chance.word()] for n in range(3))], delimiter=";")
    return text + ('9;"cut off' if chance.number == 1 else "")


@kind("Excel CSV with a sep line", page=_EXCEL, url=_EXCEL_URL, reader=excel, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _excel_sep(chance):
    rows = [[n, chance.word()] for n in range(1, 5)]
    return "sep=;\r\n" + _written([["id", "name"], *rows], delimiter=";")


@kind("Excel CSV, Windows-1252", page=_EXCEL, url=_EXCEL_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _excel_ansi(chance):
    rows = [[n, f"{chance.word()} für Müller", "5€"] for n in range(4)]
    return _written([["id", "name", "price"], *rows]).encode("cp1252")


@kind("Excel Unicode text", page=_EXCEL + ": Unicode Text", url=_EXCEL_URL, reader=document,
      verdict=LEFT, ending=".txt")  # fmt: skip
def _excel_unicode(chance):
    text = _written([_NAMES, *_orders(chance)], delimiter="\t")
    return b"\xff\xfe" + text.encode("utf-16-le")


@kind("TSV with a header", page="text/tab-separated-values (IANA)",
      url="https://www.iana.org/assignments/media-types/text/tab-separated-values",
      reader=table("\t", quotes=False), verdict=JOINED, ending=".tsv")  # fmt: skip
def _tabs(chance):
    return "id\tname\tseen_at\n" + chance.rows(
        lambda: f"{chance.randrange(99)}\t{chance.word()}\t{chance.iso()}"
    )


@kind("TSV without a header, equal first rows", page="text/tab-separated-values (IANA)",
      url="https://www.iana.org/assignments/media-types/text/tab-separated-values",
      reader=table("\t", header=False, quotes=False), verdict=EITHER, ending=".tsv")  # fmt: skip
def _tabs_rows(chance):
    return "alpha\thealth\tok\n" + chance.rows(lambda: f"{chance.word()}\thealth\tok")


@kind("pandas with an index", page=_PANDAS, url=_PANDAS_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _pandas(chance):
    return ",name,value\n" + "".join(
        f"{n},{chance.word()},{chance.random():.3f}\n" for n in range(5)
    )


@kind("pandas with numbers for columns", page=_PANDAS, url=_PANDAS_URL, reader=table(),
      verdict=EITHER, ending=".csv")  # fmt: skip
def _pandas_numbers(chance):
    return ",0,1\n" + "".join(f"{n},{chance.random():.3f},{n}.5\n" for n in range(5))


@kind("CSV by Python, everything quoted", page=_PYTHON, url=_PYTHON_URL, reader=table(),
      verdict=JOINED, ending=".csv")  # fmt: skip
def _quoted(chance):
    return _written([_NAMES, *_orders(chance)], quoting=csv.QUOTE_ALL)


@kind("CSV with escaped quotes", page="LOAD DATA Statement: ESCAPED BY (MySQL)",
      url="https://dev.mysql.com/doc/refman/8.4/en/load-data.html", reader=lines,
      verdict=EITHER, ending=".csv")  # fmt: skip
def _escaped(chance):
    return chance.rows(lambda: f'"{chance.randrange(99)}","5\\" {chance.word()}","\\N"')


@kind("CSV of one column", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER, ending=".csv")
def _one_column(chance):
    return "email\n" + chance.rows(lambda: f"{chance.word()}@example.com")


@kind("CSV of one column of words", page=_RFC, url=_RFC_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _one_column_words(chance):
    return "healthy\n" + chance.rows(chance.word)


@kind("CSV of a data logger", page="TOA5 file format (Campbell Scientific): four header lines",
      url="https://help.campbellsci.com/cr1000x/cr1000x/data-tables/toa5-ascii-file-format.htm",
      reader=document, verdict=EITHER, ending=".csv")  # fmt: skip
def _logger(chance):
    head = (
        '"TOA5","station","CR1000X","1234","std.02","prog","1","Hourly"\n"TIMESTAMP","RECORD","T"\n'
        '"TS","RN","Deg C"\n"","","Avg"\n'
    )
    return head + chance.rows(
        lambda: f'"{chance.at("%Y-%m-%d %H:%M:%S")}",{chance.randrange(9)},20.1'
    )


@kind("CSV of two tables", page="Prometheus blackbox of spreadsheets: RFC 4180 has one header",
      url=_RFC_URL, reader=document, verdict=EITHER, ending=".csv")  # fmt: skip
def _two_tables(chance):
    rows = chance.rows(lambda: f"{chance.word()},{chance.randrange(9)}", 2, 3)
    return f"name,count\n{rows}\ncity,total\n{rows}"


@kind("CSV with a total below", page=_EXCEL, url=_EXCEL_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _total(chance):
    rows = [[chance.word(), chance.randrange(99)] for _ in range(3)]
    return _written([["name", "count"], *rows, ["Total", 42]])


@kind("CSV with a header and NULs", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER,
      ending=".csv")  # fmt: skip
def _nuls(chance):
    return "id,name\n" + chance.rows(lambda: f"{chance.randrange(99)},a\0b")


@kind("Pipe-separated with a header", page=_PYTHON, url=_PYTHON_URL, reader=table("|"),
      verdict=EITHER, ending=".csv")  # fmt: skip
def _pipes(chance):
    return "id|name|state\n" + chance.rows(lambda: f"{chance.randrange(99)}|{chance.word()}|ok")


@kind("CSV named .txt", page=_RFC, url=_RFC_URL, reader=table(), verdict=EITHER, ending=".txt")
def _txt(chance):
    return _written([_NAMES, *_orders(chance)], lineterminator="\n")


@kind("Open data, GTFS stop times", page="GTFS Schedule Reference",
      url="https://gtfs.org/documentation/schedule/reference/", reader=table(), verdict=JOINED,
      ending="stop_times.csv")  # fmt: skip
def _gtfs(chance):
    return "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n" + chance.rows(
        lambda: (
            f"{chance.hexes(6)},{chance.at('%H:%M:%S')},{chance.at('%H:%M:%S')},S{chance.word()},1"
        )
    )


@kind("Bank statement, MT940", page="SWIFT MT940 Customer Statement Message",
      url="https://www2.swift.com/knowledgecentre/publications/us9m_20230720/",
      reader=document, verdict=LEFT, ending=".sta")  # fmt: skip
def _mt940(chance):
    return (
        f":20:START\r\n:25:12345678/{chance.randrange(10**9)}\r\n:28C:1/1\r\n:60F:C260101EUR10,00\r\n"
        f":61:2601020102D5,00N{chance.hexes(6)}\r\n:62F:C260102EUR5,00\r\n-\r\n"
    )
