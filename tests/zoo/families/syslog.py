"""Syslog and what travels in it; logs of operating systems and security tools."""

from __future__ import annotations

from tests.zoo.kinds import HEADED, TEXT, Kind, js, rows, spaced
from tests.zoo.readers import document, json_lines, lines, table, zeek

_3164_URL = "https://www.rfc-editor.org/rfc/rfc3164"
_5424_URL = "https://www.rfc-editor.org/rfc/rfc5424"
_ZEEK_URL = "https://docs.zeek.org/en/master/log-formats.html"


def bsd_line(c) -> str:
    """As rsyslog writes it into files."""
    return f"{c.at('%b %e %H:%M:%S')} {c.host()} {c.word()}[{c.randrange(9999)}]: {c.words()}"


def modern_line(c) -> str:
    """One message of RFC 5424."""
    return (
        f"<{c.randrange(192)}>1 {c.at('%Y-%m-%dT%H:%M:%S.%3Z')} {c.host()}"
        f" {c.word()} {c.randrange(9999)} ID47"
        f' [exampleSDID@32473 iut="3" eventSource="A\\"b\\]"] {c.words()}'
    )


def _octets(c):
    messages = [modern_line(c) for _ in range(4)]
    return "".join(f"{len(one.encode())} {one}" for one in messages)


def _zeek(c):
    head = (
        "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
        f"#open\t{c.at('%Y-%m-%d-%H-%M-%S')}\n#fields\tts\tuid\tid.orig_h\tproto\n"
        "#types\ttime\tstring\taddr\tenum\n"
    )
    rows = c.rows(lambda: f"{c.unix()}.123456\tC{c.hexes(16)}\t{c.ip()}\ttcp")
    return f"{head}{rows}#close\t{c.at('%Y-%m-%d-%H-%M-%S')}\n"


def _zeek_paths(c):
    path = c.pick(("conn", "dns", "http"))
    fields = "ts\tuid\thost" if path == "http" else "ts\tuid\tquery"
    head = f"#separator \\x09\n#path\t{path}\n#fields\t{fields}\n#types\ttime\tstring\tstring\n"
    return head + c.rows(lambda: f"{c.unix()}.1\tC{c.hexes(16)}\t{c.word()}.com")


# fmt: off
KINDS = (
    Kind("syslog, RFC 3164", ".log", lines, _3164_URL,
         rows(lambda c: f"<{c.randrange(192)}>{bsd_line(c)}")),
    Kind("syslog in files", "messages", lines, _3164_URL,
         lambda c: c.unended(c.rows(lambda: bsd_line(c)))),
    Kind("syslog, RFC 5424", ".log", lines, _5424_URL, rows(modern_line)),
    Kind("syslog, RFC 5424 with BOMs", ".log", lines, _5424_URL,
         rows(lambda c: modern_line(c).replace("] ", "] \ufeffü "))),
    Kind("syslog, octet counting", ".syslog", document, "https://www.rfc-editor.org/rfc/rfc6587",
         _octets, expected="unknown_format"),
    Kind("rsyslog with ISO times", "auth.log", lines,
         "https://www.rsyslog.com/doc/configuration/templates.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%f+00:00')} {c.host()} sshd[{c.randrange(99)}"
         f"]: Accepted publickey for {c.word()} from {c.ip()} port 22 ssh2")),
    Kind("journald JSON", ".json", json_lines, "https://systemd.io/JOURNAL_EXPORT_FORMATS/",
         rows(lambda c: spaced(__REALTIME_TIMESTAMP=f"{c.unix()}000000", MESSAGE=c.words(),
                _PID=str(c.randrange(9999)), PRIORITY="6"))),
    Kind("journald JSON-SSE", ".sse", lines,
         "https://www.freedesktop.org/software/systemd/man/latest/journalctl.html",
         rows(lambda c: "data: " + js(MESSAGE=c.words()) + "\n"), declared=TEXT),
    Kind("Linux kernel ring buffer", "dmesg.log", lines,
         "https://man7.org/linux/man-pages/man1/dmesg.1.html",
         rows(lambda c: f"[{c.randrange(99999):5}.{c.randrange(10**6):06}] "
         f"usb 1-1: new high-speed USB device {c.randrange(9)}")),
    Kind("auditd", "audit.log", lines,
         "https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/7/html/security_guide/sec-understanding_audit_log_files",
         rows(lambda c: f"type=SYSCALL msg=audit({c.unix()}.{c.randrange(999):03}:"
         f"{c.randrange(9999)}): arch=c000003e syscall=2 success=no exit=-13 pid=3538"
         f' comm="{c.word()}" exe="/bin/cat" key=(null)')),
    Kind("auditd, enriched", "audit.log", lines,
         "https://man7.org/linux/man-pages/man5/auditd.conf.5.html",
         rows(lambda c: f"type=USER_ACCT msg=audit({c.unix()}.123:{c.randrange(9999)}): pid=1 uid=0"
         f' auid=0 ses=1 msg=\'op=PAM:accounting res=success\'\x1dUID="root" AUID="root"')),
    Kind("Cisco ASA", ".log", lines,
         "https://www.cisco.com/c/en/us/td/docs/security/asa/syslog/asa-syslog.html",
         rows(lambda c: f"{c.at('%b %d %Y %H:%M:%S')} fw : %ASA-6-302013: Built outbound TCP connection"
         f" {c.randrange(9999)} for outside:{c.ip()}/443 to inside:{c.ip()}/51234")),
    Kind("iptables", "kern.log", lines,
         "https://man7.org/linux/man-pages/man8/iptables-extensions.8.html",
         rows(lambda c: f"{c.at('%b %e %H:%M:%S')} gw kernel: [1234.5] DROP IN=eth0 OUT= SRC={c.ip()}"
         f" DST={c.ip()} LEN=40 PROTO=TCP SPT={c.randrange(65535)} DPT=22 SYN")),
    Kind("CEF", ".cef", lines,
         "https://www.microfocus.com/documentation/arcsight/arcsight-smartconnectors-8.4/pdfdoc/cef-implementation-standard/cef-implementation-standard.pdf",
         rows(lambda c: f"CEF:0|Security|threatmanager|1.0|{c.randrange(999)}|worm \\| stopped|10|"
         f"src={c.ip()} dst={c.ip()} spt=1232 msg={c.words()}"), declared=TEXT),
    Kind("CEF by syslog", ".log", lines,
         "https://learn.microsoft.com/en-us/azure/sentinel/connect-cef-syslog-ama",
         rows(lambda c: f"{c.at('%b %e %H:%M:%S')} {c.host()} CEF:0|Vendor|IPS|3.2|1|Probe|5|"
         f"src={c.ip()} act=blocked")),
    Kind("LEEF", ".leef", lines,
         "https://www.ibm.com/docs/en/dsm?topic=overview-leef-event-components",
         rows(lambda c: f"LEEF:2.0|Lancope|StealthWatch|1.0|41|^|src={c.ip()}^dst={c.ip()}^sev=5"),
         declared=TEXT),
    Kind("GELF", ".gelf", json_lines,
         "https://go2docs.graylog.org/current/getting_in_log_data/gelf.html",
         rows(lambda c: js(version="1.1", host=c.host(), short_message=c.words(), level=5, _id=1))),
    Kind("GELF over TCP", ".gelf", document,
         "https://go2docs.graylog.org/current/getting_in_log_data/gelf.html",
         lambda c: c.rows(lambda: js(version="1.1", short_message=c.words()), end="\0"),
         expected="unknown_format"),
    Kind("BIND queries", "queries.log", lines,
         "https://bind9.readthedocs.io/en/latest/reference.html",
         rows(lambda c: f"{c.at('%d-%b-%Y %H:%M:%S.%3')} queries: info: client @0x7f {c.ip()}#5353"
         f" ({c.word()}.example.com): query: {c.word()}.example.com IN A +E(0)K (10.0.0.2)")),
    Kind("dnsmasq", ".log", lines, "https://thekelleys.org.uk/dnsmasq/docs/dnsmasq-man.html",
         rows(lambda c: f"{c.at('%b %e %H:%M:%S')} dnsmasq[123]: query[A] {c.word()}.com from"
         f" {c.ip()}")),
    Kind("fail2ban", "fail2ban.log", lines,
         "https://github.com/fail2ban/fail2ban/wiki/How-fail2ban-works",
         rows(lambda c: f"{c.at('%Y-%m-%d %H:%M:%S,%3')} fail2ban.actions        [{c.randrange(999)}]:"
         f" NOTICE  [sshd] Ban {c.ip()}")),
    Kind("Postfix", "mail.log", lines, "https://www.postfix.org/MAILLOG_README.html",
         rows(lambda c: f"{c.at('%b %e %H:%M:%S')} mx postfix/smtpd[{c.randrange(999)}]:"
         f" {c.hexes(10).upper()}: client={c.host()}[{c.ip()}]")),
    Kind("Windows events, JSON by winlogbeat", ".ndjson", json_lines,
         "https://www.elastic.co/docs/reference/beats/winlogbeat/exported-fields-winlog",
         lambda c: c.rows(lambda: js(
          **{"@timestamp": c.iso(), "winlog": {"event_id": 4624}, "message": "a\r\nb"}), end="\r\n",
         )),
    Kind("Windows events, exported as CSV", ".csv", table(),
         "https://learn.microsoft.com/en-us/powershell/module/microsoft.powershell.utility/export-csv",
         lambda c: ("\ufeffLevel,Date and Time,Source,Event ID,Task Category\r\n" + c.rows(lambda: (
          f'Information,{c.at("%m/%d/%Y %I:%M:%S %p")},Security,4624,Logon,"two\r\n'
          f'lines {c.word()}"'), end="\r\n")), declared=HEADED, expected="malformed_document"),
    Kind("Zeek TSV", "conn.log", zeek, _ZEEK_URL, _zeek, loose=lines),
    Kind("Zeek TSV of several paths", ".log", zeek, _ZEEK_URL, _zeek_paths, loose=lines),
    Kind("Zeek JSON", "conn.log", json_lines, _ZEEK_URL, rows(lambda c: js(
         ts=c.unix() + 0.25, uid=f"C{c.hexes(16)}", **{"id.orig_h": c.ip()}))),
    Kind("Suricata EVE", "eve.json", json_lines,
         "https://docs.suricata.io/en/latest/output/eve/eve-json-format.html",
         rows(lambda c: js(timestamp=c.at("%Y-%m-%dT%H:%M:%S.%f+0000"), event_type="alert",
            src_ip=c.ip(), alert={"signature": "ET \"SCAN\" {x}"}))),
    Kind("Snort fast alerts", "alert_fast.txt", lines, "https://docs.snort.org/start/alert_logging",
         rows(lambda c: f'{c.at("%m/%d-%H:%M:%S.%f")} [**] [1:366:7] "PROTOCOL-ICMP PING" [**]'
         f" [Priority: 3] {{ICMP}} {c.ip()} -> {c.ip()}"), declared=TEXT),
    Kind("osquery results", "osqueryd.results.log", json_lines,
         "https://osquery.readthedocs.io/en/stable/deployment/logging/",
         rows(lambda c: js(name="pack_a", hostIdentifier=c.host(), unixTime=c.unix(),
            columns={"path": c.path()}, action="added"))),
    Kind("Falco", ".json", json_lines, "https://falco.org/docs/concepts/outputs/formatting/",
         rows(lambda c: js(
         output=f"{c.iso()}: Notice A shell", priority="Notice", rule="Terminal shell"))),
    Kind("macOS install.log", "install.log", lines, _3164_URL,
         rows(lambda c: f"{c.at('%Y-%m-%d %H:%M:%S+00')} {c.host()} softwareupdated[{c.randrange(999)}]:"
         f" {c.words()}")),
)
# fmt: on
