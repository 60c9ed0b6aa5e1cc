"""Logs and dumps of databases."""

from __future__ import annotations

from tests.zoo.kinds import ROWS, TEXT, Kind, js, rows, spaced
from tests.zoo.readers import document, entries, json_document, json_lines, lines, table

_PG_URL = "https://www.postgresql.org/docs/current/runtime-config-logging.html"
_COPY_URL = "https://www.postgresql.org/docs/current/sql-copy.html"
_MYSQL = "https://dev.mysql.com/doc/refman/8.4/en/"


def _csvlog_row(c) -> str:
    return (
        f'{c.at("%Y-%m-%d %H:%M:%S.%3 UTC")},"{c.word()}","db",{c.randrange(9999)},'
        f'"{c.ip()}:5432",{c.hexes(8)}.1,1,"SELECT",{c.at("%Y-%m-%d %H:%M:%S UTC")},3/2,'
        f'0,ERROR,42P01,"relation ""{c.word()}"" does not exist",,,,,,"select\n1",15,,"psql"'
    )


def _mysqldump(c):
    rows = ",".join(f"({n},'{c.word()}')" for n in range(3))
    return (
        "-- MySQL dump 10.13  Distrib 8.4.0\n--\n/*!40101 SET NAMES utf8mb4 */;\n"
        "DROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n  `id` int\n);\n"
        f"INSERT INTO `t` VALUES {rows};\n-- Dump completed\n"
    )


def _mongo_array(c):
    rows = [js(_id={"$oid": c.hexes(24)}, n=n) for n in range(3)]
    return "[" + ",\n".join(rows) + "]\n"


# fmt: off
KINDS = (
    Kind("PostgreSQL csvlog", "postgresql-2026-01-02.csv", table(header=False), _PG_URL,
         rows(_csvlog_row), expected="unknown_format"),
    Kind("PostgreSQL jsonlog", "postgresql-2026-01-02.json", json_lines, _PG_URL,
         rows(lambda c: js(timestamp=c.at("%Y-%m-%d %H:%M:%S.%3 UTC"), pid=c.randrange(9999),
            error_severity="LOG", message=c.words()))),
    Kind("PostgreSQL stderr", "postgresql-2026-01-02.log", entries(r"\d{4}-\d\d-\d\d "), _PG_URL,
         rows(lambda c: f"{c.at('%Y-%m-%d %H:%M:%S.%3 UTC')} [{c.randrange(9999)}] LOG:  statement:"
         f" SELECT {c.word()}\n\tFROM {c.word()};"), loose=lines),
    Kind("PostgreSQL COPY text", ".copy", lines, _COPY_URL,
         rows(lambda c: f"{c.randrange(99)}\t{c.word()}\t\\N\ttwo\\nlines"), declared=TEXT),
    Kind("MySQL slow query log", "mysql-slow.log", entries(r"# Time: "),
         _MYSQL + "slow-query-log.html",
         rows(lambda c: f"# Time: {c.at('%Y-%m-%dT%H:%M:%S.%fZ')}\n# User@Host: app[app] @ [{c.ip()}]"
         f"  Id: {c.randrange(99)}\n# Query_time: 2.0  Lock_time: 0.0 Rows_sent: 1\n"
         f"SET timestamp={c.unix()};\nSELECT *\nFROM {c.word()};"), loose=lines),
    Kind("MySQL error log", "mysqld.err", lines, _MYSQL + "error-log-format.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%fZ')} {c.randrange(99)} [Warning] [MY-010068]"
         f" [Server] {c.words()}")),
    Kind("MySQL general query log", "mysqld.log", lines, _MYSQL + "query-log.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%fZ')}\t   {c.randrange(99)} Query\tSELECT 1")),
    Kind("mysqldump", ".sql", document, _MYSQL + "mysqldump.html", _mysqldump,
         expected="unknown_format"),
    Kind("MongoDB log", "mongod.log", json_lines,
         "https://www.mongodb.com/docs/manual/reference/log-messages/",
         rows(lambda c: js(t={"$date": c.iso()}, s="I", c="NETWORK", id=22943, ctx="listener",
            msg="Connection accepted", attr={"remote": c.ip()}))),
    Kind("mongoexport, array", ".json", json_document,
         "https://www.mongodb.com/docs/database-tools/mongoexport/", _mongo_array),
    Kind("Redis log", "redis-server.log", lines,
         "https://redis.io/docs/latest/operate/oss_and_stack/management/config/",
         rows(lambda c: f"{c.randrange(9999)}:M {c.at('%d %b %Y %H:%M:%S.%3')} * Ready to accept"
         f" connections {c.word()}")),
    Kind("Cassandra", "system.log", lines,
         "https://cassandra.apache.org/doc/latest/cassandra/troubleshooting/reading_logs.html",
         rows(lambda c: f"INFO  [main] {c.at('%Y-%m-%d %H:%M:%S,%3')} StorageService.java:617 -"
         f" {c.words()}")),
    Kind("Elasticsearch", "_server.json", json_lines,
         "https://www.elastic.co/docs/deploy-manage/monitor/logging-configuration",
         rows(lambda c: spaced(**{"@timestamp": c.iso(), "log.level": "INFO", "message": c.words()}
         ))),
    Kind("Elasticsearch bulk", ".ndjson", json_lines,
         "https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk",
         rows(lambda c: js(index={"_index": "test"}) + "\n" + js(field=c.words()))),
    Kind("Snowflake unload, CSV", "data_0_0_0.csv", table(header=False),
         "https://docs.snowflake.com/en/sql-reference/sql/copy-into-location",
         rows(lambda c: f"{c.randrange(99)},{c.word()},\\N,{c.words()}"), declared=ROWS),
    Kind("ClickHouse TabSeparatedWithNames", ".tsv", table("\t", quotes=False),
         "https://clickhouse.com/docs/interfaces/formats/TabSeparatedWithNames",
         lambda c: ("id\tname\tcreated_at\n" + c.rows(
         lambda: f"{c.randrange(999)}\t{c.word()}\t{c.at('%Y-%m-%d %H:%M:%S')}")),
         declared={"format": "tsv", "header": True, "quote": "none"}),
    Kind("ClickHouse JSONCompactEachRow", ".ndjson", json_lines,
         "https://clickhouse.com/docs/interfaces/formats/JSONCompactEachRow",
         rows(lambda c: f'[{c.randrange(99)}, "{c.word()}", [1, 2], null]'), declared=TEXT),
    Kind("Hive text, control characters", "000000_0", lines,
         "https://hive.apache.org/docs/latest/language/languagemanual-ddl/",
         rows(lambda c: f"{c.randrange(99)}\x01{c.word()}\x01a\x02b\x03c\x01\\N"), declared=TEXT),
)
# fmt: on
