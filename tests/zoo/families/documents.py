"""Text that is a document as a whole: two of them in one object are no document."""

from __future__ import annotations

from tests.zoo.families.text import EITHER, LEFT, kind
from tests.zoo.readers import document, lines, mbox, paragraphs

_XML = "Extensible Markup Language (XML) 1.0"
_XML_URL = "https://www.w3.org/TR/xml/"


@kind("XML", page=_XML, url=_XML_URL, reader=document, verdict=LEFT, ending=".xml")
def _xml(chance):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<r>\n  <a n="1">{chance.word()}</a>\n</r>\n'


@kind("XML without a declaration", page=_XML, url=_XML_URL, reader=document, verdict=LEFT,
      ending=".xml")  # fmt: skip
def _xml_bare(chance):
    return f"<orders><order id='{chance.randrange(99)}'/></orders>"


@kind("SVG", page="Scalable Vector Graphics (SVG) 2", url="https://www.w3.org/TR/SVG2/",
      reader=document, verdict=LEFT, ending=".svg")  # fmt: skip
def _svg(chance):
    return f'<svg xmlns="http://www.w3.org/2000/svg"><circle r="{chance.randrange(99)}"/></svg>\n'


@kind("HTML", page="HTML Standard", url="https://html.spec.whatwg.org/", reader=document,
      verdict=LEFT, ending=".html")  # fmt: skip
def _html(chance):
    return f"<!DOCTYPE html>\n<html><body><p>{chance.words()}</p></body></html>\n"


@kind("RSS", page="RSS 2.0 Specification", url="https://www.rssboard.org/rss-specification",
      reader=document, verdict=LEFT, ending=".rss")  # fmt: skip
def _rss(chance):
    return f'<rss version="2.0"><channel><title>{chance.word()}</title></channel></rss>'


@kind("JUnit report", page="JUnit XML format (Jenkins)",
      url="https://github.com/testmoapp/junitxml", reader=document, verdict=LEFT,
      ending="results.xml")  # fmt: skip
def _junit(chance):
    return f'<testsuites><testsuite name="{chance.word()}" tests="1"/></testsuites>'


@kind("Property list", page="Property List Programming Guide (Apple)",
      url="https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/PropertyLists/",
      reader=document, verdict=LEFT, ending=".plist")  # fmt: skip
def _plist(chance):
    import plistlib

    return plistlib.dumps({"name": chance.word(), "n": chance.randrange(9)})


@kind("YAML", page="YAML Ain't Markup Language 1.2", url="https://yaml.org/spec/1.2.2/",
      reader=document, verdict=LEFT, ending=".yaml")  # fmt: skip
def _yaml(chance):
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {chance.word()}\n  labels: {{a: b}}\n"


@kind("YAML documents", page="YAML Ain't Markup Language 1.2", url="https://yaml.org/spec/1.2.2/",
      reader=document, verdict=LEFT, ending=".yml")  # fmt: skip
def _yaml_stream(chance):
    return f"---\nname: {chance.word()}\n---\n- 1\n- {chance.word()}\n...\n"


@kind("YAML list of flow mappings", page="YAML Ain't Markup Language 1.2",
      url="https://yaml.org/spec/1.2.2/", reader=document, verdict=LEFT, ending=".yaml")  # fmt: skip
def _yaml_list(chance):
    return f"- {{name: {chance.word()}, n: 1}}\n- {{name: {chance.word()}, n: 2}}\n"


@kind("TOML", page="TOML v1.0.0", url="https://toml.io/en/v1.0.0", reader=document, verdict=LEFT,
      ending=".toml")  # fmt: skip
def _toml(chance):
    return f'title = "{chance.word()}"\n\n[owner]\ndob = 1979-05-27T07:32:00Z\nports = [1, 2]\n'


@kind("INI", page="configparser: Supported INI File Structure (Python)",
      url="https://docs.python.org/3/library/configparser.html", reader=document, verdict=LEFT,
      ending=".ini")  # fmt: skip
def _ini(chance):
    return f"[DEFAULT]\nInterval = 45\n\n[{chance.word()}]\nUser = {chance.word()}\n"


@kind(".properties", page="java.util.Properties (Java)",
      url="https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html",
      reader=document, verdict=LEFT, ending=".properties")  # fmt: skip
def _properties(chance):
    return f"# settings\napp.name={chance.word()}\napp.path=a\\\n  b\n"


@kind(".env", page="Environment variables (Docker Compose)",
      url="https://docs.docker.com/compose/how-tos/environment-variables/", reader=document,
      verdict=LEFT, ending=".env")  # fmt: skip
def _env(chance):
    return f'DB_HOST={chance.host()}\nDB_PORT=5432\nSECRET="a b"\n'


@kind("PEM", page="RFC 7468: Textual Encodings of PKIX, PKCS, and CMS Structures",
      url="https://www.rfc-editor.org/rfc/rfc7468", reader=document, verdict=LEFT,
      ending=".pem")  # fmt: skip
def _pem(chance):
    import base64

    body = base64.encodebytes(chance.randbytes(100)).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"


@kind("vCard", page="RFC 6350: vCard Format Specification",
      url="https://www.rfc-editor.org/rfc/rfc6350", reader=document, verdict=LEFT,
      ending=".vcf")  # fmt: skip
def _vcard(chance):
    return f"BEGIN:VCARD\r\nVERSION:4.0\r\nFN:{chance.words(2, 2)}\r\nEND:VCARD\r\n"


@kind("iCalendar", page="RFC 5545: iCalendar", url="https://www.rfc-editor.org/rfc/rfc5545",
      reader=document, verdict=LEFT, ending=".ics")  # fmt: skip
def _calendar(chance):
    return (
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\n"
        f"DTSTART:{chance.at('%Y%m%dT%H%M%SZ')}\r\nSUMMARY:{chance.words()}\r\nEND:VEVENT\r\n"
        "END:VCALENDAR\r\n"
    )


@kind("LDIF", page="RFC 2849: The LDAP Data Interchange Format",
      url="https://www.rfc-editor.org/rfc/rfc2849", reader=document, verdict=LEFT,
      ending=".ldif")  # fmt: skip
def _ldif(chance):
    return f"version: 1\ndn: cn={chance.word()},dc=example,dc=com\nobjectclass: top\ncn:: YWJj\n\n"


@kind("diff", page="diff: Unified Format (GNU)",
      url="https://www.gnu.org/software/diffutils/manual/html_node/Unified-Format.html",
      reader=document, verdict=LEFT, ending=".diff")  # fmt: skip
def _diff(chance):
    return f"--- a/f\t2026-01-02\n+++ b/f\t2026-01-02\n@@ -1 +1 @@\n-{chance.word()}\n+{chance.word()}\n"


@kind("Markdown", page="CommonMark Spec", url="https://spec.commonmark.org/0.31.2/",
      reader=document, verdict=LEFT, ending=".md")  # fmt: skip
def _markdown(chance):
    return f"# {chance.words()}\n\n- {chance.word()}\n- {chance.word()}\n\n```\ncode\n```\n"


@kind("Markdown table", page="GitHub Flavored Markdown Spec: tables",
      url="https://github.github.com/gfm/", reader=document, verdict=LEFT, ending=".md")  # fmt: skip
def _markdown_table(chance):
    return "| a | b |\n|---|---|\n" + chance.rows(lambda: f"| {chance.word()} | 1 |")


@kind("Prose", page="Plain text (RFC 2046, text/plain)",
      url="https://www.rfc-editor.org/rfc/rfc2046", reader=document, verdict=LEFT,
      ending=".txt")  # fmt: skip
def _prose(chance):
    return chance.rows(lambda: chance.words(6, 12).capitalize() + ".", 3, 6)


@kind("Prose without a line end", page="Plain text (RFC 2046, text/plain)",
      url="https://www.rfc-editor.org/rfc/rfc2046", reader=document, verdict=LEFT, ending="")  # fmt: skip
def _prose_line(chance):
    return chance.words(6, 12)


@kind("mbox", page="RFC 4155: The application/mbox Media Type",
      url="https://www.rfc-editor.org/rfc/rfc4155", reader=mbox, verdict=EITHER,
      ending=".mbox")  # fmt: skip
def _mbox(chance):
    return chance.rows(
        lambda: f"From a@example.com {chance.at('%a %b %e %H:%M:%S %Y')}\nSubject: {chance.word()}\n\n"
        f"{chance.words()}\n>From here\n", 1, 3
    )  # fmt: skip


@kind("E-mail", page="RFC 5322: Internet Message Format",
      url="https://www.rfc-editor.org/rfc/rfc5322", reader=document, verdict=LEFT,
      ending=".eml")  # fmt: skip
def _mail(chance):
    return (
        f"Received: from {chance.host()} by mx; {chance.at('%a, %d %b %Y %H:%M:%S +0000')}\r\n"
        f"From: a@example.com\r\nSubject: {chance.words()}\r\n\r\n{chance.words()}\r\n"
    )


@kind("SES received mail", page="Receiving email: Deliver to S3 bucket action (SES)",
      url="https://docs.aws.amazon.com/ses/latest/dg/receiving-email-action-s3.html",
      reader=document, verdict=LEFT, ending="")  # fmt: skip
def _ses_mail(chance):
    return (
        f"Return-Path: <{chance.word()}@example.com>\r\nReceived: from a by b\r\n"
        f"Content-Type: text/plain\r\n\r\n{chance.words()}\r\n"
    )


@kind("WARC", page="WARC File Format 1.1",
      url="https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
      reader=document, verdict=LEFT, ending=".warc")  # fmt: skip
def _warc(chance):
    body = f"HTTP/1.1 200 OK\r\n\r\n{chance.words()}"
    return (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{chance.id()}>\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}\r\n\r\n"
    )


@kind("SQL script", page="SQL Syntax (PostgreSQL)",
      url="https://www.postgresql.org/docs/current/sql-syntax.html", reader=document,
      verdict=LEFT, ending=".sql")  # fmt: skip
def _sql(chance):
    return f"BEGIN;\nINSERT INTO t VALUES ('{chance.word()}');\nCOMMIT;\n"


@kind("Python source", page="The Python Language Reference",
      url="https://docs.python.org/3/reference/", reader=document, verdict=LEFT, ending=".py")  # fmt: skip
def _python(chance):
    return f'"""{chance.words()}."""\n\nimport os\n\n\ndef {chance.word()}():\n    return os\n'


@kind("Shell script", page="Bash Reference Manual",
      url="https://www.gnu.org/software/bash/manual/bash.html", reader=document, verdict=LEFT,
      ending=".sh")  # fmt: skip
def _shell(chance):
    return f'#!/bin/sh\nset -e\nexec {chance.word()} "$@"\n'


@kind("FASTA", page="FASTA format (NCBI BLAST)",
      url="https://blast.ncbi.nlm.nih.gov/doc/blast-topics/", reader=document, verdict=LEFT,
      ending=".fa")  # fmt: skip
def _fasta(chance):
    return f">seq{chance.number} {chance.word()}\nACGTACGTNN\nACGT\n"


@kind("FASTQ", page="The Sanger FASTQ file format (Nucleic Acids Research 38)",
      url="https://doi.org/10.1093/nar/gkp1137", reader=document, verdict=LEFT,
      ending=".fastq")  # fmt: skip
def _fastq(chance):
    return chance.rows(lambda: f'@{chance.hexes(6)}\nACGT\n+\nII"I')


@kind("VCF", page="The Variant Call Format Specification",
      url="https://samtools.github.io/hts-specs/VCFv4.3.pdf", reader=document, verdict=LEFT,
      ending=".vcf")  # fmt: skip
def _vcf(chance):
    return "##fileformat=VCFv4.3\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n" + chance.rows(
        lambda: f"20\t{chance.randrange(9999)}\t.\tG\tA\t29\tPASS\tDP=14"
    )


@kind("N-Triples", page="RDF 1.1 N-Triples", url="https://www.w3.org/TR/n-triples/",
      reader=lines, verdict=EITHER, ending=".nt")  # fmt: skip
def _triples(chance):
    return chance.rows(lambda: f'<http://a/{chance.word()}> <http://p> "{chance.word()}" .')


@kind("Turtle", page="RDF 1.1 Turtle", url="https://www.w3.org/TR/turtle/", reader=document,
      verdict=LEFT, ending=".ttl")  # fmt: skip
def _turtle(chance):
    return f"@prefix ex: <http://example.org/> .\nex:{chance.word()} a ex:Thing ;\n  ex:n 1 .\n"


@kind("WebVTT", page="WebVTT: The Web Video Text Tracks Format",
      url="https://www.w3.org/TR/webvtt1/", reader=document, verdict=LEFT, ending=".vtt")  # fmt: skip
def _vtt(chance):
    return f"WEBVTT\n\n00:01.000 --> 00:04.000\n{chance.words()}\n"


@kind("SubRip", page="SubRip file format (Library of Congress)",
      url="https://www.loc.gov/preservation/digital/formats/fdd/fdd000569.shtml",
      reader=document, verdict=LEFT, ending=".srt")  # fmt: skip
def _srt(chance):
    return f"1\r\n00:00:01,000 --> 00:00:04,000\r\n{chance.words()}\r\n\r\n"


@kind("HL7 v2", page="HL7 Version 2 Product Suite",
      url="https://www.hl7.org/implement/standards/product_brief.cfm?product_id=185",
      reader=document, verdict=LEFT, ending=".hl7")  # fmt: skip
def _hl7(chance):
    return (
        f"MSH|^~\\&|A|B|C|D|20260102||ADT^A01|{chance.hexes(6)}|P|2.5\rPID|1||{chance.hexes(4)}\r"
    )


@kind("EDIFACT", page="ISO 9735 (UN/EDIFACT syntax rules)",
      url="https://unece.org/trade/uncefact/introducing-unedifact", reader=document,
      verdict=LEFT, ending=".edi")  # fmt: skip
def _edifact(chance):
    return f"UNA:+.? 'UNB+UNOC:3+A+B+260102:0005+{chance.hexes(6)}'UNZ+1+1'"


@kind("X12", page="ASC X12 interchange structure",
      url="https://x12.org/reference", reader=document, verdict=LEFT, ending=".x12")  # fmt: skip
def _x12(chance):
    return f"ISA*00*          *ZZ*A*ZZ*B*260102*0005*U*00401*{chance.randrange(10**9):09}*0*P*>~IEA*0*1~"


@kind("PGN", page="Portable Game Notation Specification",
      url="https://ia902908.us.archive.org/26/items/pgn-standard-1994-03-12/PGN_standard_1994-03-12.txt",
      reader=document, verdict=LEFT, ending=".pgn")  # fmt: skip
def _pgn(chance):
    return f'[Event "{chance.word()}"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 1-0\n\n'


@kind("GPX", page="GPX 1.1 Schema Documentation", url="https://www.topografix.com/GPX/1/1/",
      reader=document, verdict=LEFT, ending=".gpx")  # fmt: skip
def _gpx(chance):
    return f'<?xml version="1.0"?>\n<gpx><wpt lat="{chance.randrange(90)}.1" lon="1.0"/></gpx>\n'


@kind("PostScript", page="PostScript Language Document Structuring Conventions",
      url="https://www.adobe.com/jp/print/postscript/pdfs/PLRM.pdf", reader=document,
      verdict=LEFT, ending=".ps")  # fmt: skip
def _postscript(chance):
    return f"%!PS-Adobe-3.0\n%%Title: {chance.word()}\nshowpage\n%%EOF\n"


@kind("RTF", page="Rich Text Format (RTF) Specification",
      url="https://www.loc.gov/preservation/digital/formats/fdd/fdd000473.shtml",
      reader=document, verdict=LEFT, ending=".rtf")  # fmt: skip
def _rtf(chance):
    return f"{{\\rtf1\\ansi {chance.words()}\\par}}"


@kind("Base64", page="RFC 4648: base64", url="https://www.rfc-editor.org/rfc/rfc4648",
      reader=document, verdict=LEFT, ending=".b64")  # fmt: skip
def _base64(chance):
    import base64

    return base64.encodebytes(chance.randbytes(120)).decode()


@kind("Uuencode", page="uuencode (POSIX)",
      url="https://pubs.opengroup.org/onlinepubs/9699919799/utilities/uuencode.html",
      reader=document, verdict=LEFT, ending=".uu")  # fmt: skip
def _uuencode(chance):
    import binascii

    return b"begin 644 f\n" + binascii.b2a_uu(chance.randbytes(30)) + b"`\nend\n"


@kind("sha256sum", page="sha2 utilities (GNU Coreutils)",
      url="https://www.gnu.org/software/coreutils/manual/html_node/sha2-utilities.html",
      reader=lines, verdict=EITHER, ending="SHA256SUMS")  # fmt: skip
def _sums(chance):
    return chance.rows(lambda: f"{chance.hexes(64)}  {chance.word()}.tar.gz")


@kind("robots.txt", page="RFC 9309: Robots Exclusion Protocol",
      url="https://www.rfc-editor.org/rfc/rfc9309", reader=document, verdict=LEFT,
      ending="robots.txt")  # fmt: skip
def _robots(chance):
    return f"User-agent: *\nDisallow: /{chance.word()}/\n"


@kind("Debian control", page="Debian Policy Manual: control files",
      url="https://www.debian.org/doc/debian-policy/ch-controlfields.html",
      reader=paragraphs(), verdict=EITHER, ending="Packages")  # fmt: skip
def _debian(chance):
    return chance.rows(
        lambda: f"Package: {chance.word()}\nVersion: 1.0\nDescription: a\n b\n", 1, 3
    )


@kind("crontab", page="crontab(5)", url="https://man7.org/linux/man-pages/man5/crontab.5.html",
      reader=document, verdict=LEFT, ending="crontab")  # fmt: skip
def _crontab(chance):
    return f"# m h dom mon dow command\n*/5 * * * * /usr/bin/{chance.word()} >/dev/null 2>&1\n"


@kind("/etc/hosts", page="hosts(5)", url="https://man7.org/linux/man-pages/man5/hosts.5.html",
      reader=lines, verdict=EITHER, ending="hosts")  # fmt: skip
def _hosts(chance):
    return "127.0.0.1 localhost\n" + chance.rows(lambda: f"{chance.ip()} {chance.host()}", 1, 4)


@kind("Word list", page="words: look(1)",
      url="https://man7.org/linux/man-pages/man1/look.1.html", reader=document, verdict=LEFT,
      ending="words")  # fmt: skip
def _words(chance):
    return chance.rows(chance.word)
