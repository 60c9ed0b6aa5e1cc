"""Logs and dumps of databases."""

from __future__ import annotations

from tests.zoo.families.text import EITHER, JOINED, LEFT, js, kind, spaced
from tests.zoo.readers import document, entries, json_document, json_lines, lines, table

_PG_PAGE = "Error Reporting and Logging (PostgreSQL)"
_PG_URL = "https://www.postgresql.org/docs/current/runtime-config-logging.html"
_COPY_PAGE = "COPY (PostgreSQL)"
_COPY_URL = "https://www.postgresql.org/docs/current/sql-copy.html"
_MYSQL = "https://dev.mysql.com/doc/refman/8.4/en/"


def _csvlog_row(chance) -> str:
    return (
        f'{chance.at("%Y-%m-%d %H:%M:%S.%3 UTC")},"{chance.word()}","db",{chance.randrange(9999)},'
        f'"{chance.ip()}:5432",{chance.hexes(8)}.1,1,"SELECT",{chance.at("%Y-%m-%d %H:%M:%S UTC")},3/2,'
        f'0,ERROR,42P01,"relation ""{chance.word()}"" does not exist",,,,,,"select\n1",15,,"psql"'
    )


@kind("PostgreSQL csvlog", page=_PG_PAGE, url=_PG_URL, reader=table(header=False), verdict=EITHER,
      ending="postgresql-2026-01-02.csv")  # fmt: skip
def _csvlog(chance):
    return chance.rows(lambda: _csvlog_row(chance))


@kind("PostgreSQL csvlog, declared headerless", page=_PG_PAGE, url=_PG_URL,
      reader=table(header=False), verdict=JOINED, ending="postgresql-2026-01-02.csv",
      given={"csv_header": "absent"})  # fmt: skip
def _csvlog_declared(chance):
    return chance.rows(lambda: _csvlog_row(chance))


@kind("PostgreSQL jsonlog", page=_PG_PAGE, url=_PG_URL, reader=json_lines, verdict=JOINED,
      ending="postgresql-2026-01-02.json")  # fmt: skip
def _jsonlog(chance):
    return chance.rows(
        lambda: js(timestamp=chance.at("%Y-%m-%d %H:%M:%S.%3 UTC"), pid=chance.randrange(9999),
                   error_severity="LOG", message=chance.words())
    )  # fmt: skip


@kind("PostgreSQL stderr", page=_PG_PAGE, url=_PG_URL, reader=entries(r"\d{4}-\d\d-\d\d "),
      loose=lines, verdict=JOINED, ending="postgresql-2026-01-02.log")  # fmt: skip
def _stderr(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%d %H:%M:%S.%3 UTC')} [{chance.randrange(9999)}] LOG:  statement:"
            f" SELECT {chance.word()}\n\tFROM {chance.word()};"
        )
    )


@kind("PostgreSQL COPY text", page=_COPY_PAGE, url=_COPY_URL, reader=lines, verdict=EITHER,
      ending=".copy")  # fmt: skip
def _copy_text(chance):
    return chance.rows(lambda: f"{chance.randrange(99)}\t{chance.word()}\t\\N\ttwo\\nlines")


@kind("PostgreSQL COPY text with its end", page=_COPY_PAGE, url=_COPY_URL, reader=document,
      verdict=LEFT, ending=".copy")  # fmt: skip
def _copy_end(chance):
    return chance.rows(lambda: f"{chance.randrange(99)}\t{chance.word()}\t\\N") + "\\.\n"


@kind("PostgreSQL COPY binary", page=_COPY_PAGE, url=_COPY_URL, reader=document, verdict=LEFT,
      ending=".bin")  # fmt: skip
def _copy_binary(chance):
    rows = b"".join(b"\x00\x01\x00\x00\x00\x04" + chance.randbytes(4) for _ in range(3))
    return b"PGCOPY\n\xff\r\n\x00" + bytes(8) + rows + b"\xff\xff"


@kind(
    "MySQL slow query log",
    page="The Slow Query Log (MySQL)",
    url=_MYSQL + "slow-query-log.html",
    reader=entries(r"# Time: "),
    loose=lines,
    verdict=JOINED,
    ending="mysql-slow.log",
)
def _slow(chance):
    return chance.rows(
        lambda: (
            f"# Time: {chance.at('%Y-%m-%dT%H:%M:%S.%fZ')}\n# User@Host: app[app] @ [{chance.ip()}]"
            f"  Id: {chance.randrange(99)}\n# Query_time: 2.0  Lock_time: 0.0 Rows_sent: 1\n"
            f"SET timestamp={chance.unix()};\nSELECT *\nFROM {chance.word()};"
        )
    )


@kind(
    "MySQL error log",
    page="Error Log Output Format (MySQL)",
    url=_MYSQL + "error-log-format.html",
    reader=lines,
    verdict=JOINED,
    ending="mysqld.err",
)
def _mysql_error(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%fZ')} {chance.randrange(99)} [Warning] [MY-010068]"
            f" [Server] {chance.words()}"
        )
    )


@kind(
    "MySQL general query log",
    page="The General Query Log (MySQL)",
    url=_MYSQL + "query-log.html",
    reader=lines,
    verdict=JOINED,
    ending="mysqld.log",
)
def _mysql_general(chance):
    return chance.rows(
        lambda: f"{chance.at('%Y-%m-%dT%H:%M:%S.%fZ')}\t   {chance.randrange(99)} Query\tSELECT 1"
    )


@kind(
    "MySQL binary log",
    page="Binary Log Events (MySQL)",
    url="https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html",
    reader=document,
    verdict=LEFT,
    ending="binlog.000001",
)
def _binlog(chance):
    return b"\xfebin" + chance.randbytes(120)


@kind(
    "mysqldump",
    page="mysqldump (MySQL)",
    url=_MYSQL + "mysqldump.html",
    reader=document,
    verdict=LEFT,
    ending=".sql",
)
def _mysqldump(chance):
    rows = ",".join(f"({n},'{chance.word()}')" for n in range(3))
    return (
        "-- MySQL dump 10.13  Distrib 8.4.0\n--\n/*!40101 SET NAMES utf8mb4 */;\n"
        "DROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n  `id` int\n);\n"
        f"INSERT INTO `t` VALUES {rows};\n-- Dump completed\n"
    )


@kind(
    "pg_dump",
    page="pg_dump (PostgreSQL)",
    url="https://www.postgresql.org/docs/current/app-pgdump.html",
    reader=document,
    verdict=LEFT,
    ending=".sql",
)
def _pg_dump(chance):
    return (
        "--\n-- PostgreSQL database dump\n--\n\nSET client_encoding = 'UTF8';\n\n"
        f"COPY public.t (id, name) FROM stdin;\n1\t{chance.word()}\n\\.\n"
    )


@kind(
    "pg_dump, custom format",
    page="pg_dump (PostgreSQL): --format=custom",
    url="https://www.postgresql.org/docs/current/app-pgdump.html",
    reader=document,
    verdict=LEFT,
    ending=".dump",
)
def _pg_custom(chance):
    return b"PGDMP\x01\x0f\x00\x04\x08\x01\x01" + chance.randbytes(90)


@kind(
    "MongoDB log",
    page="Log Messages (MongoDB)",
    url="https://www.mongodb.com/docs/manual/reference/log-messages/",
    reader=json_lines,
    verdict=JOINED,
    ending="mongod.log",
)
def _mongo(chance):
    return chance.rows(
        lambda: js(t={"$date": chance.iso()}, s="I", c="NETWORK", id=22943, ctx="listener",
                   msg="Connection accepted", attr={"remote": chance.ip()})
    )  # fmt: skip


@kind(
    "mongoexport, array",
    page="mongoexport: --jsonArray",
    url="https://www.mongodb.com/docs/database-tools/mongoexport/",
    reader=json_document,
    verdict=JOINED,
    ending=".json",
)
def _mongo_array(chance):
    rows = [js(_id={"$oid": chance.hexes(24)}, n=n) for n in range(3)]
    return "[" + ",\n".join(rows) + "]\n"


@kind(
    "mongodump",
    page="BSON Specification",
    url="https://bsonspec.org/spec.html",
    reader=document,
    verdict=LEFT,
    ending=".bson",
)
def _bson(chance):
    def one():
        name = chance.word().encode() + b"\0"
        body = b"\x02name\0" + len(name).to_bytes(4, "little") + name + b"\0"
        return (len(body) + 4).to_bytes(4, "little") + body

    return b"".join(one() for _ in range(3))


@kind(
    "Redis log",
    page="Redis configuration: logfile",
    url="https://redis.io/docs/latest/operate/oss_and_stack/management/config/",
    reader=lines,
    verdict=JOINED,
    ending="redis-server.log",
)
def _redis(chance):
    return chance.rows(
        lambda: (
            f"{chance.randrange(9999)}:M {chance.at('%d %b %Y %H:%M:%S.%3')} * Ready to accept"
            f" connections {chance.word()}"
        )
    )


@kind(
    "Redis RDB",
    page="Redis persistence",
    url="https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/",
    reader=document,
    verdict=LEFT,
    ending="dump.rdb",
)
def _rdb(chance):
    return (
        b"REDIS0011\xfa\x09redis-ver\x057.2.4"
        + chance.randbytes(60)
        + b"\xff"
        + chance.randbytes(8)
    )


@kind(
    "Redis AOF",
    page="Redis serialization protocol specification",
    url="https://redis.io/docs/latest/develop/reference/protocol-spec/",
    reader=document,
    verdict=LEFT,
    ending=".aof",
)
def _aof(chance):
    def command() -> str:
        word = chance.word()
        return f"*3\r\n$3\r\nSET\r\n${len(word)}\r\n{word}\r\n$1\r\n1\r\n"

    return "".join(command() for _ in range(4))


@kind(
    "Cassandra",
    page="Cassandra logs: system.log",
    url="https://cassandra.apache.org/doc/latest/cassandra/troubleshooting/reading_logs.html",
    reader=lines,
    verdict=JOINED,
    ending="system.log",
)
def _cassandra(chance):
    return chance.rows(
        lambda: (
            f"INFO  [main] {chance.at('%Y-%m-%d %H:%M:%S,%3')} StorageService.java:617 -"
            f" {chance.words()}"
        )
    )


@kind(
    "Elasticsearch",
    page="Elasticsearch: JSON logging",
    url="https://www.elastic.co/docs/deploy-manage/monitor/logging-configuration",
    reader=json_lines,
    verdict=JOINED,
    ending="_server.json",
)
def _elastic(chance):
    return chance.rows(
        lambda: spaced(
            **{"@timestamp": chance.iso(), "log.level": "INFO", "message": chance.words()}
        )
    )


@kind(
    "Elasticsearch bulk",
    page="Bulk API (Elasticsearch)",
    url="https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk",
    reader=json_lines,
    verdict=JOINED,
    ending=".ndjson",
)
def _bulk(chance):
    return chance.rows(lambda: js(index={"_index": "test"}) + "\n" + js(field=chance.words()))


@kind(
    "Snowflake unload, CSV",
    page="COPY INTO location (Snowflake)",
    url="https://docs.snowflake.com/en/sql-reference/sql/copy-into-location",
    reader=table(header=False),
    verdict=EITHER,
    ending="data_0_0_0.csv",
)
def _snowflake(chance):
    return chance.rows(lambda: f"{chance.randrange(99)},{chance.word()},\\N,{chance.words()}")


@kind(
    "ClickHouse TabSeparatedWithNames",
    page="TabSeparatedWithNames (ClickHouse)",
    url="https://clickhouse.com/docs/interfaces/formats/TabSeparatedWithNames",
    reader=table("\t", quotes=False),
    verdict=JOINED,
    ending=".tsv",
)
def _clickhouse(chance):
    return "id\tname\tcreated_at\n" + chance.rows(
        lambda: f"{chance.randrange(999)}\t{chance.word()}\t{chance.at('%Y-%m-%d %H:%M:%S')}"
    )


@kind(
    "ClickHouse JSONCompactEachRow",
    page="JSONCompactEachRow (ClickHouse)",
    url="https://clickhouse.com/docs/interfaces/formats/JSONCompactEachRow",
    reader=json_lines,
    verdict=EITHER,
    ending=".ndjson",
)
def _compact(chance):
    return chance.rows(lambda: f'[{chance.randrange(99)}, "{chance.word()}", [1, 2], null]')


@kind(
    "Hive text, control characters",
    page="LanguageManual DDL: row formats (Hive)",
    url="https://hive.apache.org/docs/latest/language/languagemanual-ddl/",
    reader=lines,
    verdict=EITHER,
    ending="000000_0",
)
def _hive(chance):
    return chance.rows(lambda: f"{chance.randrange(99)}\x01{chance.word()}\x01a\x02b\x03c\x01\\N")


@kind(
    "SQLite",
    page="Database File Format (SQLite)",
    url="https://www.sqlite.org/fileformat2.html",
    reader=document,
    verdict=LEFT,
    ending=".db",
)
def _sqlite(chance):
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.execute("create table t (a text)")
    base.execute("insert into t values (?)", (chance.words(),))
    return base.serialize()
