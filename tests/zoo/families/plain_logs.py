"""What programs print into their logs without a layout that a catalogue would know."""

from __future__ import annotations

from collections.abc import Callable

from tests.zoo.chance import Chance
from tests.zoo.families.text import EITHER, JOINED, kind
from tests.zoo.readers import lines

_PRINTED = "Treat logs as event streams (The Twelve-Factor App)", "https://12factor.net/logs"
_JAVA = "https://docs.oracle.com/en/java/javase/"
_Line = Callable[[Chance], str]


def _log(name: str, page: str, url: str, ending: str, line: _Line, verdict=JOINED) -> None:
    """A kind whose sources are such lines, at least two of them."""

    def write(chance: Chance) -> str:
        return chance.unended(chance.rows(lambda: line(chance), 2))

    put = kind(name, page=page, url=url, reader=lines, verdict=verdict, ending=ending)
    put(write)


def _printed(name: str, ending: str, line: _Line, verdict=JOINED) -> None:
    _log(name, *_PRINTED, ending, line, verdict)


_printed(
    "Printed: who logged in", ".log", lambda c: f"user {c.word()} logged {c.choice(('in', 'out'))}"
)
_printed(
    "Printed: workers",
    "nohup.out",
    lambda c: (
        f"[worker-{c.randrange(9)}] {c.choice(('started', 'stopped'))} {c.word()} {c.randrange(9999)}"
    ),
)
_printed("Printed: epoch times", ".log", lambda c: f"{c.unix()}.{c.randrange(999):03} {c.words()}")
_printed("Printed: epoch milliseconds", ".txt", lambda c: f"{c.unix()}123 {c.level()} {c.words()}")
_printed(
    "Printed: sentences of events",
    ".log",
    lambda c: f"Payment of {c.randrange(99)} EUR received from {c.word()}",
)
_printed(
    "Printed: progress", "job.out", lambda c: f"Processed {c.randrange(99)} of 100 {c.word()} files"
)
_printed(
    "Printed: names without an ending",
    "",
    lambda c: f"{c.word()} finished after {c.randrange(999)} ms",
)
_printed(
    "Printed: keys and values",
    ".log",
    lambda c: f"user={c.word()} action={c.word()} result={c.choice(('ok', 'failed'))}",
)
_printed(
    "Printed: URLs", "crawled.txt", lambda c: f"https://example.com{c.path()}?id={c.randrange(999)}"
)
_printed(
    "Printed: requests",
    "requests.log",
    lambda c: f"GET {c.path()} {c.status()} {c.randrange(999)}ms",
)
_printed(
    "Printed: many languages",
    ".log",
    lambda c: c.choice(
        (
            f"Benutzer {c.word()} hat sich angemeldet",
            f"Пользователь {c.word()} вошёл в систему",
            f"ユーザー {c.word()} がログインしました",
            f"المستخدم {c.word()} سجل الدخول",
            f"L'utilisateur {c.word()} est connecté",
        )
    ),
)
_printed(
    "Printed: arrows and brackets",
    ".log",
    lambda c: f"--> {c.word()} ({c.randrange(99)}) <-- {c.word()} [{c.word()}]",
)
_printed("Printed: levels alone", ".log", lambda c: f"{c.level()} {c.words()}")
_printed("Printed: levels and colons", "stdout.txt", lambda c: f"{c.level().lower()}: {c.words()}")
_printed("Printed: blank lines between", ".log", lambda c: f"{c.words()}\n")
_printed(
    "Printed: ANSI colours", ".log", lambda c: f"\x1b[32m{c.level()}\x1b[0m {c.words()}", EITHER
)
_printed(
    "Printed: one banner above each",
    ".log",
    lambda c: f"Server starting\nlistening on {c.randrange(9999)}",
    EITHER,
)
_log(
    "logrus without a time",
    "logrus: TextFormatter",
    "https://pkg.go.dev/github.com/sirupsen/logrus",
    ".log",
    lambda c: f'level={c.level().lower()} msg="{c.words()}" {c.word()}={c.randrange(9)}',
)
_log(
    "logfmt of one word",
    "logfmt package (Go)",
    "https://pkg.go.dev/github.com/kr/logfmt",
    "app.log",
    lambda c: f"level=info msg={c.word()}{c.randrange(9999)}",
)
_log(
    "Zeek TSV without its header",
    "Zeek Logs: conn.log",
    "https://docs.zeek.org/en/master/logs/conn.html",
    "conn.log",
    lambda c: (
        f"{c.unix()}.123456\tC{c.hexes(16)}\t{c.ip()}\t{c.randrange(9999)}\t{c.ip()}\t443\ttcp\tssl\t-\t-\tSF"
    ),
)
_log(
    "Java stack traces alone",
    "Throwable.printStackTrace (Java)",
    _JAVA + "21/docs/api/java.base/java/lang/Throwable.html",
    "stderr.log",
    lambda c: (
        f'Exception in thread "{c.word()}" java.lang.IllegalStateException: {c.words()}\n'
        f"\tat com.example.{c.word().title()}.run(A.java:{c.randrange(99)})\n\tat java.base/java.lang.Thread.run(Thread.java:840)"
    ),
)
_log(
    "Python tracebacks between lines",
    "traceback (Python)",
    "https://docs.python.org/3/library/traceback.html",
    ".log",
    lambda c: (
        f"processing {c.word()}\nTraceback (most recent call last):\n"
        f"  File \"/app/{c.word()}.py\", line {c.randrange(99)}, in run\n    work()\nKeyError: '{c.word()}'"
    ),
)
_log(
    "JVM garbage collection, Java 8",
    "The -XX:+PrintGCDetails option (Java 8)",
    _JAVA + "8/docs/technotes/tools/unix/java.html",
    "gc.log",
    lambda c: (
        f"{c.randrange(99)}.{c.randrange(999):03}: [GC (Allocation Failure) {c.randrange(9999)}K->{c.randrange(999)}K(19456K), 0.0041 secs]"
    ),
)
_log(
    "PostgreSQL stderr without a prefix",
    "Error Reporting and Logging (PostgreSQL)",
    "https://www.postgresql.org/docs/current/runtime-config-logging.html",
    "postgres.log",
    lambda c: f"{c.choice(('LOG', 'ERROR', 'FATAL'))}:  {c.words()}",
)
_log(
    "Redis log, 2.6",
    "Redis configuration: logfile",
    "https://redis.io/docs/latest/operate/oss_and_stack/management/config/",
    "redis.log",
    lambda c: f"[{c.randrange(9999)}] {c.at('%d %b %H:%M:%S.%3')} * {c.words()}",
)
_log(
    "systemd boot messages",
    "systemd: boot console output",
    "https://www.freedesktop.org/software/systemd/man/latest/systemd.html",
    "boot.log",
    lambda c: (
        f"[  OK  ] {c.choice(('Started', 'Reached target', 'Stopped'))} {c.word()}.service - {c.words()}."
    ),
)
_log(
    "cron's own log",
    "cron(8)",
    "https://man7.org/linux/man-pages/man8/cron.8.html",
    "cron.log",
    lambda c: (
        f"{c.word()} ({c.at('%m/%d-%H:%M:%S')}-{c.randrange(9999)}) CMD (/usr/bin/{c.word()})"
    ),
)
_log(
    "git reflog",
    "git-reflog: Manage reflog information",
    "https://git-scm.com/docs/git-reflog",
    "HEAD",
    lambda c: (
        f"{c.hexes(40)} {c.hexes(40)} A B <a@example.com> {c.unix()} +0000\tcommit: {c.words()}"
    ),
)
_log(
    "git reflog, shown",
    "git-reflog: Manage reflog information",
    "https://git-scm.com/docs/git-reflog",
    "reflog.txt",
    lambda c: f"{c.hexes(7)} HEAD@{{{c.randrange(99)}}}: commit: {c.words()}",
)
_log(
    "apt history",
    "apt(8): history.log",
    "https://manpages.debian.org/stable/apt/apt.8.en.html",
    "history.log",
    lambda c: (
        f"Start-Date: {c.at('%Y-%m-%d  %H:%M:%S')}\nCommandline: apt install {c.word()}\n"
        f"Install: {c.word()}:amd64 (1.{c.randrange(9)})\nEnd-Date: {c.at('%Y-%m-%d  %H:%M:%S')}\n"
    ),
)
_log(
    "dpkg log",
    "dpkg(1)",
    "https://man7.org/linux/man-pages/man1/dpkg.1.html",
    "dpkg.log",
    lambda c: f"{c.at('%Y-%m-%d %H:%M:%S')} status installed {c.word()}:amd64 1.{c.randrange(9)}",
)
_log(
    "Docker Compose",
    "docker compose logs",
    "https://docs.docker.com/reference/cli/docker/compose/logs/",
    "compose.log",
    lambda c: f"{c.word()}-1  | {c.words()}",
)
_log(
    "pm2",
    "Log management (PM2)",
    "https://pm2.keymetrics.io/docs/usage/log-management/",
    "pm2.log",
    lambda c: f"{c.randrange(4)}|{c.word()}  | {c.words()}",
)
_log(
    "env_logger (Rust)",
    "env_logger (Rust)",
    "https://docs.rs/env_logger/",
    ".log",
    lambda c: f"[{c.iso()} {c.level():5} {c.word()}::{c.word()}] {c.words()}",
)
_log(
    "Logback, short",
    "Layouts (Logback)",
    "https://logback.qos.ch/manual/layouts.html",
    ".log",
    lambda c: (
        f"{c.randrange(9999)} [{c.word()}] {c.level():5} com.example.{c.word().title()} - {c.words()}"
    ),
)
_log(
    "Serilog, console",
    "Serilog: formatting output",
    "https://github.com/serilog/serilog/wiki/Formatting-Output",
    ".txt",
    lambda c: f"[{c.at('%H:%M:%S')} {c.choice(('INF', 'WRN', 'ERR'))}] {c.words()}",
)
_log(
    "Rails, development",
    "Debugging Rails Applications: the logger",
    "https://guides.rubyonrails.org/debugging_rails_applications.html",
    "development.log",
    lambda c: (
        f'Started GET "{c.path()}" for {c.ip()} at {c.at("%Y-%m-%d %H:%M:%S +0000")}\nProcessing by {c.word().title()}Controller#index as HTML\n'
        f'  Parameters: {{"id"=>"{c.randrange(99)}"}}\nCompleted {c.status()} OK in {c.randrange(99)}ms\n\n'
    ),
)
_log(
    "Django, runserver",
    "django-admin: runserver",
    "https://docs.djangoproject.com/en/stable/ref/django-admin/",
    "django.log",
    lambda c: (
        f'[{c.at("%d/%b/%Y %H:%M:%S")}] "GET {c.path()} HTTP/1.1" {c.status()} {c.randrange(9999)}'
    ),
)
_log(
    "npm debug",
    "npm: logging",
    "https://docs.npmjs.com/cli/v10/using-npm/logging",
    "-debug-0.log",
    lambda c: f"{c.randrange(99)} {c.choice(('verbose', 'info', 'silly'))} {c.word()} {c.words()}",
)
_log(
    "gunicorn",
    "Settings: logging (Gunicorn)",
    "https://docs.gunicorn.org/en/stable/settings.html",
    "gunicorn.log",
    lambda c: (
        f"[{c.at('%Y-%m-%d %H:%M:%S +0000')}] [{c.randrange(9999)}] [{c.level()}] {c.words()}"
    ),
)
_log(
    "uvicorn",
    "Settings: logging (Uvicorn)",
    "https://www.uvicorn.org/settings/",
    "uvicorn.log",
    lambda c: f'INFO:     {c.ip()}:{c.randrange(9999)} - "GET {c.path()} HTTP/1.1" {c.status()} OK',
)
_log(
    "Celery",
    "Configuration: worker_log_format (Celery)",
    "https://docs.celeryq.dev/en/stable/userguide/configuration.html",
    "celery.log",
    lambda c: (
        f"[{c.at('%Y-%m-%d %H:%M:%S,%3')}: {c.level()}/MainProcess] Task {c.word()}.{c.word()}[{c.id()}] received"
    ),
)
_log(
    "ZooKeeper",
    "ZooKeeper Administrator's Guide: logging",
    "https://zookeeper.apache.org/doc/current/zookeeperAdmin.html",
    "zookeeper.log",
    lambda c: (
        f"{c.at('%Y-%m-%d %H:%M:%S,%3')} [myid:{c.randrange(9)}] - {c.level()}  [main:{c.word()}@{c.randrange(99)}] - {c.words()}"
    ),
)
_log(
    "MongoDB log, 4.2",
    "Log Messages (MongoDB 4.2)",
    "https://www.mongodb.com/docs/v4.2/reference/log-messages/",
    "mongod.log",
    lambda c: (
        f"{c.at('%Y-%m-%dT%H:%M:%S.%3+0000')} I  NETWORK  [conn{c.randrange(99)}] {c.words()}"
    ),
)
_log(
    "Asterisk",
    "Logging (Asterisk)",
    "https://docs.asterisk.org/Operation/Logging/",
    "messages",
    lambda c: f"[{c.at('%b %e %H:%M:%S')}] NOTICE[{c.randrange(9999)}] chan_sip.c: {c.words()}",
)
_log(
    "Minecraft server",
    "Server logs (Minecraft Wiki)",
    "https://minecraft.wiki/w/Server.properties",
    "latest.log",
    lambda c: f"[{c.at('%H:%M:%S')}] [Server thread/INFO]: {c.word()} joined the game",
)
_log(
    "Maven",
    "Maven: logging",
    "https://maven.apache.org/maven-logging.html",
    "build.log",
    lambda c: f"[INFO] Building {c.word()} 1.{c.randrange(9)}",
)
_log(
    "rsync",
    "rsync(1): log file format",
    "https://download.samba.org/pub/rsync/rsync.1",
    "rsync.log",
    lambda c: f"{c.at('%Y/%m/%d %H:%M:%S')} [{c.randrange(9999)}] <f+++++++++ {c.path()}",
)
_log(
    "OpenVPN",
    "OpenVPN: reference manual, --log",
    "https://openvpn.net/community-resources/reference-manual-for-openvpn-2-6/",
    "openvpn.log",
    lambda c: f"{c.at('%a %b %e %H:%M:%S %Y')} {c.ip()}:{c.randrange(9999)} TLS: {c.words()}",
)
_log(
    "X.org",
    "Xorg(1)",
    "https://www.x.org/releases/current/doc/man/man1/Xorg.1.xhtml",
    "Xorg.0.log",
    lambda c: f"[    {c.randrange(99)}.{c.randrange(999):03}] (II) {c.word().title()}: {c.words()}",
)
_log(
    "IRC channel",
    "irssi: logging",
    "https://irssi.org/documentation/help/log/",
    ".log",
    lambda c: f"{c.at('%H:%M')} <{c.word()}> {c.words()}",
)
_log(
    "Elixir",
    "Logger (Elixir)",
    "https://hexdocs.pm/logger/Logger.html",
    "erlang.log.1",
    lambda c: f"{c.at('%H:%M:%S.%3')} [info] {c.words()}",
)
_log(
    "CoreDNS",
    "CoreDNS: log plugin",
    "https://coredns.io/plugins/log/",
    "coredns.log",
    lambda c: (
        f'[INFO] {c.ip()}:{c.randrange(9999)} - {c.randrange(9999)} "A IN {c.word()}.example. udp 40 false 512" NOERROR qr,rd 56 0.001s'
    ),
)
_log(
    "Caddy, console",
    "Logging (Caddy)",
    "https://caddyserver.com/docs/logging",
    "caddy.log",
    lambda c: f'{c.at("%Y/%m/%d %H:%M:%S.%3")}\tINFO\t{c.word()}\t{{"file": "{c.path()}"}}',
)
_log(
    "sudo",
    "sudoers: log file",
    "https://www.sudo.ws/docs/man/sudoers.man/",
    "sudo.log",
    lambda c: (
        f"{c.at('%b %e %H:%M:%S')} : {c.word()} : TTY=pts/0 ; PWD=/home ; USER=root ; COMMAND=/usr/bin/{c.word()}"
    ),
)
_log(
    "vmstat",
    "vmstat(8), without headers",
    "https://man7.org/linux/man-pages/man8/vmstat.8.html",
    "vmstat.out",
    lambda c: (
        f" {c.randrange(9)}  0      0 {c.randrange(10**6):7} {c.randrange(10**5):6} {c.randrange(10**6):7}    0    0"
    ),
    EITHER,
)
