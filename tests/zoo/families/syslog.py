"""Syslog and what travels in it; logs of operating systems and security tools."""

from __future__ import annotations

from tests.zoo.families.text import EITHER, JOINED, LEFT, js, kind, spaced
from tests.zoo.readers import document, json_lines, json_sequence, lines, paragraphs, table, zeek

_3164 = "RFC 3164: The BSD syslog Protocol"
_3164_URL = "https://www.rfc-editor.org/rfc/rfc3164"
_5424 = "RFC 5424: The Syslog Protocol"
_5424_URL = "https://www.rfc-editor.org/rfc/rfc5424"
_ZEEK = "Zeek Log Formats and Inspection"
_ZEEK_URL = "https://docs.zeek.org/en/master/log-formats.html"


def bsd_line(chance) -> str:
    """As rsyslog writes it into files."""
    return (
        f"{chance.at('%b %e %H:%M:%S')} {chance.host()} {chance.word()}[{chance.randrange(9999)}]:"
        f" {chance.words()}"
    )


def modern_line(chance) -> str:
    """One message of RFC 5424."""
    return (
        f"<{chance.randrange(192)}>1 {chance.at('%Y-%m-%dT%H:%M:%S.%3Z')} {chance.host()}"
        f" {chance.word()} {chance.randrange(9999)} ID47"
        f' [exampleSDID@32473 iut="3" eventSource="A\\"b\\]"] {chance.words()}'
    )


@kind("syslog, RFC 3164", page=_3164, url=_3164_URL, reader=lines, verdict=JOINED, ending=".log")
def _bsd(chance):
    return chance.rows(lambda: f"<{chance.randrange(192)}>{bsd_line(chance)}")


@kind("syslog in files", page=_3164, url=_3164_URL, reader=lines, verdict=JOINED, ending="messages")
def _messages(chance):
    return chance.unended(chance.rows(lambda: bsd_line(chance)))


@kind("syslog, RFC 5424", page=_5424, url=_5424_URL, reader=lines, verdict=JOINED, ending=".log")
def _modern(chance):
    return chance.rows(lambda: modern_line(chance))


@kind("syslog, RFC 5424 with BOMs", page=_5424, url=_5424_URL, reader=lines, verdict=JOINED,
      ending=".log")  # fmt: skip
def _modern_bom(chance):
    return chance.rows(lambda: modern_line(chance).replace("] ", "] \ufeffü "))


@kind(
    "syslog, octet counting",
    page="RFC 6587: Transmission of Syslog Messages over TCP",
    url="https://www.rfc-editor.org/rfc/rfc6587",
    reader=document,
    verdict=LEFT,
    ending=".syslog",
)
def _octets(chance):
    messages = [modern_line(chance) for _ in range(4)]
    return "".join(f"{len(one.encode())} {one}" for one in messages)


@kind(
    "rsyslog with ISO times",
    page="rsyslog templates: RSYSLOG_FileFormat",
    url="https://www.rsyslog.com/doc/configuration/templates.html",
    reader=lines,
    verdict=JOINED,
    ending="auth.log",
)
def _rsyslog(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%f+00:00')} {chance.host()} sshd[{chance.randrange(99)}"
            f"]: Accepted publickey for {chance.word()} from {chance.ip()} port 22 ssh2"
        )
    )


@kind(
    "journald export",
    page="Journal Export Formats (systemd)",
    url="https://systemd.io/JOURNAL_EXPORT_FORMATS/",
    reader=paragraphs(),
    verdict=EITHER,
    ending=".export",
)
def _journal_export(chance):
    return chance.rows(
        lambda: (
            f"__CURSOR=s={chance.hexes(32)};i={chance.hexes(4)}\n__REALTIME_TIMESTAMP="
            f"{chance.unix()}000000\nPRIORITY=6\nMESSAGE={chance.words()}\n"
        )
    )


@kind(
    "journald export, binary fields",
    page="Journal Export Formats (systemd)",
    url="https://systemd.io/JOURNAL_EXPORT_FORMATS/",
    reader=document,
    verdict=LEFT,
    ending=".export",
)
def _journal_binary(chance):
    text = f"two\nlines {chance.words()}".encode()
    head = f"__REALTIME_TIMESTAMP={chance.unix()}000000\nMESSAGE\n".encode()
    return head + len(text).to_bytes(8, "little") + text + b"\nPRIORITY=6\n\n"


@kind(
    "journald JSON",
    page="Journal JSON Format (systemd)",
    url="https://systemd.io/JOURNAL_EXPORT_FORMATS/",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _journal_json(chance):
    return chance.rows(
        lambda: spaced(__REALTIME_TIMESTAMP=f"{chance.unix()}000000", MESSAGE=chance.words(),
                       _PID=str(chance.randrange(9999)), PRIORITY="6")
    )  # fmt: skip


@kind(
    "journald JSON-SSE",
    page="journalctl: -o json-sse",
    url="https://www.freedesktop.org/software/systemd/man/latest/journalctl.html",
    reader=lines,
    verdict=EITHER,
    ending=".sse",
)
def _journal_sse(chance):
    return chance.rows(lambda: "data: " + js(MESSAGE=chance.words()) + "\n")


@kind(
    "journald JSON-SEQ",
    page="RFC 7464: JavaScript Object Notation (JSON) Text Sequences",
    url="https://www.rfc-editor.org/rfc/rfc7464",
    reader=json_sequence,
    verdict=EITHER,
    ending=".json-seq",
)
def _journal_sequence(chance):
    return chance.rows(lambda: "\x1e" + js(MESSAGE=chance.words(), PRIORITY="6"))


@kind(
    "Linux kernel ring buffer",
    page="dmesg",
    url="https://man7.org/linux/man-pages/man1/dmesg.1.html",
    reader=lines,
    verdict=JOINED,
    ending="dmesg.log",
)
def _dmesg(chance):
    return chance.rows(lambda: f"[{chance.randrange(99999):5}.{chance.randrange(10**6):06}] "
                       f"usb 1-1: new high-speed USB device {chance.randrange(9)}")  # fmt: skip


@kind(
    "auditd",
    page="Understanding audit log files (Red Hat)",
    url="https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/7/html/security_guide/sec-understanding_audit_log_files",
    reader=lines,
    verdict=JOINED,
    ending="audit.log",
)
def _auditd(chance):
    return chance.rows(
        lambda: (
            f"type=SYSCALL msg=audit({chance.unix()}.{chance.randrange(999):03}:"
            f"{chance.randrange(9999)}): arch=c000003e syscall=2 success=no exit=-13 pid=3538"
            f' comm="{chance.word()}" exe="/bin/cat" key=(null)'
        )
    )


@kind(
    "auditd, enriched",
    page="auditd.conf: log_format ENRICHED",
    url="https://man7.org/linux/man-pages/man5/auditd.conf.5.html",
    reader=lines,
    verdict=JOINED,
    ending="audit.log",
)
def _auditd_enriched(chance):
    return chance.rows(
        lambda: (
            f"type=USER_ACCT msg=audit({chance.unix()}.123:{chance.randrange(9999)}): pid=1 uid=0"
            f' auid=0 ses=1 msg=\'op=PAM:accounting res=success\'\x1dUID="root" AUID="root"'
        )
    )


@kind(
    "Cisco ASA",
    page="Cisco Secure Firewall ASA Series Syslog Messages",
    url="https://www.cisco.com/c/en/us/td/docs/security/asa/syslog/asa-syslog.html",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _asa(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%b %d %Y %H:%M:%S')} fw : %ASA-6-302013: Built outbound TCP connection"
            f" {chance.randrange(9999)} for outside:{chance.ip()}/443 to inside:{chance.ip()}/51234"
        )
    )


@kind(
    "iptables",
    page="iptables-extensions: LOG",
    url="https://man7.org/linux/man-pages/man8/iptables-extensions.8.html",
    reader=lines,
    verdict=JOINED,
    ending="kern.log",
)
def _iptables(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%b %e %H:%M:%S')} gw kernel: [1234.5] DROP IN=eth0 OUT= SRC={chance.ip()}"
            f" DST={chance.ip()} LEN=40 PROTO=TCP SPT={chance.randrange(65535)} DPT=22 SYN"
        )
    )


@kind(
    "CEF",
    page="Implementing ArcSight Common Event Format (CEF)",
    url="https://www.microfocus.com/documentation/arcsight/arcsight-smartconnectors-8.4/pdfdoc/cef-implementation-standard/cef-implementation-standard.pdf",
    reader=lines,
    verdict=JOINED,
    ending=".cef",
)
def _cef(chance):
    return chance.rows(
        lambda: (
            f"CEF:0|Security|threatmanager|1.0|{chance.randrange(999)}|worm \\| stopped|10|"
            f"src={chance.ip()} dst={chance.ip()} spt=1232 msg={chance.words()}"
        )
    )


@kind(
    "CEF by syslog",
    page="CEF via syslog (Microsoft Sentinel)",
    url="https://learn.microsoft.com/en-us/azure/sentinel/connect-cef-syslog-ama",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _cef_syslog(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%b %e %H:%M:%S')} {chance.host()} CEF:0|Vendor|IPS|3.2|1|Probe|5|"
            f"src={chance.ip()} act=blocked"
        )
    )


@kind(
    "LEEF",
    page="Log Event Extended Format (LEEF)",
    url="https://www.ibm.com/docs/en/dsm?topic=overview-leef-event-components",
    reader=lines,
    verdict=JOINED,
    ending=".leef",
)
def _leef(chance):
    return chance.rows(
        lambda: f"LEEF:2.0|Lancope|StealthWatch|1.0|41|^|src={chance.ip()}^dst={chance.ip()}^sev=5"
    )


@kind(
    "GELF",
    page="GELF Payload Specification (Graylog)",
    url="https://go2docs.graylog.org/current/getting_in_log_data/gelf.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".gelf",
)
def _gelf(chance):
    return chance.rows(
        lambda: js(version="1.1", host=chance.host(), short_message=chance.words(), level=5, _id=1)
    )


@kind(
    "GELF over TCP",
    page="GELF via TCP: frames end with a NUL (Graylog)",
    url="https://go2docs.graylog.org/current/getting_in_log_data/gelf.html",
    reader=document,
    verdict=LEFT,
    ending=".gelf",
)
def _gelf_tcp(chance):
    return chance.rows(lambda: js(version="1.1", short_message=chance.words()), end="\0")


@kind(
    "BIND queries",
    page="BIND 9 Administrator Reference Manual: logging",
    url="https://bind9.readthedocs.io/en/latest/reference.html",
    reader=lines,
    verdict=JOINED,
    ending="queries.log",
)
def _bind(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%d-%b-%Y %H:%M:%S.%3')} queries: info: client @0x7f {chance.ip()}#5353"
            f" ({chance.word()}.example.com): query: {chance.word()}.example.com IN A +E(0)K (10.0.0.2)"
        )
    )


@kind(
    "dnsmasq",
    page="dnsmasq: --log-queries",
    url="https://thekelleys.org.uk/dnsmasq/docs/dnsmasq-man.html",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _dnsmasq(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%b %e %H:%M:%S')} dnsmasq[123]: query[A] {chance.word()}.com from"
            f" {chance.ip()}"
        )
    )


@kind(
    "fail2ban",
    page="fail2ban: logging",
    url="https://github.com/fail2ban/fail2ban/wiki/How-fail2ban-works",
    reader=lines,
    verdict=JOINED,
    ending="fail2ban.log",
)
def _fail2ban(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%d %H:%M:%S,%3')} fail2ban.actions        [{chance.randrange(999)}]:"
            f" NOTICE  [sshd] Ban {chance.ip()}"
        )
    )


@kind(
    "Postfix",
    page="Postfix: maillog_file",
    url="https://www.postfix.org/MAILLOG_README.html",
    reader=lines,
    verdict=JOINED,
    ending="mail.log",
)
def _postfix(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%b %e %H:%M:%S')} mx postfix/smtpd[{chance.randrange(999)}]:"
            f" {chance.hexes(10).upper()}: client={chance.host()}[{chance.ip()}]"
        )
    )


@kind(
    "Windows events, XML",
    page="Event schema (Windows Event Log)",
    url="https://learn.microsoft.com/en-us/windows/win32/wes/eventschema-schema",
    reader=document,
    verdict=LEFT,
    ending=".xml",
)
def _windows_xml(chance):
    event = (
        "<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>"
        f"<EventID>4624</EventID><Computer>{chance.host()}</Computer></System></Event>\r\n"
    )
    return "<?xml version='1.0' encoding='utf-8'?>\r\n<Events>\r\n" + event * 3 + "</Events>\r\n"


@kind(
    "Windows events, JSON by winlogbeat",
    page="Winlogbeat fields",
    url="https://www.elastic.co/docs/reference/beats/winlogbeat/exported-fields-winlog",
    reader=json_lines,
    verdict=JOINED,
    ending=".ndjson",
)
def _windows_json(chance):
    return chance.rows(
        lambda: js(
            **{"@timestamp": chance.iso(), "winlog": {"event_id": 4624}, "message": "a\r\nb"}
        ),
        end="\r\n",
    )


@kind(
    "Windows events, exported as CSV",
    page="wevtutil and Event Viewer: save as CSV",
    url="https://learn.microsoft.com/en-us/powershell/module/microsoft.powershell.utility/export-csv",
    reader=table(),
    verdict=EITHER,
    ending=".csv",
)
def _windows_csv(chance):
    return "\ufeffLevel,Date and Time,Source,Event ID,Task Category\r\n" + chance.rows(
        lambda: (
            f'Information,{chance.at("%m/%d/%Y %I:%M:%S %p")},Security,4624,Logon,"two\r\n'
            f'lines {chance.word()}"'
        ),
        end="\r\n",
    )


@kind("Zeek TSV", page=_ZEEK, url=_ZEEK_URL, reader=zeek, verdict=EITHER, ending="conn.log")
def _zeek(chance):
    head = (
        "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
        f"#open\t{chance.at('%Y-%m-%d-%H-%M-%S')}\n#fields\tts\tuid\tid.orig_h\tproto\n"
        "#types\ttime\tstring\taddr\tenum\n"
    )
    rows = chance.rows(lambda: f"{chance.unix()}.123456\tC{chance.hexes(16)}\t{chance.ip()}\ttcp")
    return f"{head}{rows}#close\t{chance.at('%Y-%m-%d-%H-%M-%S')}\n"


@kind("Zeek TSV of several paths", page=_ZEEK, url=_ZEEK_URL, reader=zeek, verdict=EITHER,
      ending=".log")  # fmt: skip
def _zeek_paths(chance):
    path = chance.pick(("conn", "dns", "http"))
    fields = "ts\tuid\thost" if path == "http" else "ts\tuid\tquery"
    head = f"#separator \\x09\n#path\t{path}\n#fields\t{fields}\n#types\ttime\tstring\tstring\n"
    return head + chance.rows(
        lambda: f"{chance.unix()}.1\tC{chance.hexes(16)}\t{chance.word()}.com"
    )


@kind("Zeek JSON", page=_ZEEK, url=_ZEEK_URL, reader=json_lines, verdict=JOINED, ending="conn.log")
def _zeek_json(chance):
    return chance.rows(
        lambda: js(
            ts=chance.unix() + 0.25, uid=f"C{chance.hexes(16)}", **{"id.orig_h": chance.ip()}
        )
    )


@kind(
    "Suricata EVE",
    page="EVE JSON Format (Suricata)",
    url="https://docs.suricata.io/en/latest/output/eve/eve-json-format.html",
    reader=json_lines,
    verdict=JOINED,
    ending="eve.json",
)
def _suricata(chance):
    return chance.rows(
        lambda: js(timestamp=chance.at("%Y-%m-%dT%H:%M:%S.%f+0000"), event_type="alert",
                   src_ip=chance.ip(), alert={"signature": "ET \"SCAN\" {x}"})
    )  # fmt: skip


@kind(
    "Snort fast alerts",
    page="Snort: output modules, alert_fast",
    url="https://docs.snort.org/start/alert_logging",
    reader=lines,
    verdict=JOINED,
    ending="alert_fast.txt",
)
def _snort(chance):
    return chance.rows(
        lambda: (
            f'{chance.at("%m/%d-%H:%M:%S.%f")} [**] [1:366:7] "PROTOCOL-ICMP PING" [**]'
            f" [Priority: 3] {{ICMP}} {chance.ip()} -> {chance.ip()}"
        )
    )


@kind(
    "osquery results",
    page="Logging (osquery)",
    url="https://osquery.readthedocs.io/en/stable/deployment/logging/",
    reader=json_lines,
    verdict=JOINED,
    ending="osqueryd.results.log",
)
def _osquery(chance):
    return chance.rows(
        lambda: js(name="pack_a", hostIdentifier=chance.host(), unixTime=chance.unix(),
                   columns={"path": chance.path()}, action="added")
    )  # fmt: skip


@kind(
    "Falco",
    page="Falco outputs: JSON",
    url="https://falco.org/docs/concepts/outputs/formatting/",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _falco(chance):
    return chance.rows(
        lambda: js(
            output=f"{chance.iso()}: Notice A shell", priority="Notice", rule="Terminal shell"
        )
    )


@kind(
    "macOS install.log",
    page="RFC 3164-like lines of Apple's syslogd",
    url=_3164_URL,
    reader=lines,
    verdict=JOINED,
    ending="install.log",
)
def _mac(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%d %H:%M:%S+00')} {chance.host()} softwareupdated[{chance.randrange(999)}]:"
            f" {chance.words()}"
        )
    )
