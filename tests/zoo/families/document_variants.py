"""Documents that must never be joined, each begun in several ways, so that first lines differ."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable

from tests.zoo.chance import Chance
from tests.zoo.families.text import LEFT, kind
from tests.zoo.readers import document

_Variant = Callable[[Chance], str]
_SAM = "https://samtools.github.io/hts-specs/SAMv1.pdf"
_UCSC = "https://genome.ucsc.edu/FAQ/FAQformat.html"


def _documents(name: str, page: str, url: str, ending: str, *variants: _Variant) -> None:
    """A kind whose sources are these variants in turns, and different within each."""

    def write(chance: Chance) -> str:
        return variants[chance.number % len(variants)](chance)

    put = kind(
        f"{name}, variants", page=page, url=url, reader=document, verdict=LEFT, ending=ending
    )
    put(write)


_documents(
    "YAML",
    "YAML Ain't Markup Language 1.2",
    "https://yaml.org/spec/1.2.2/",
    ".yaml",
    lambda c: f"name: {c.word()}\nversion: {c.randrange(9)}\nsteps:\n  - run: {c.word()}\n",
    lambda c: f"{c.word()}:\n  image: {c.word()}:1\n  ports: [80, 443]\n",
    lambda c: f"- {c.word()}\n- {c.word()}\n- n: {c.randrange(9)}\n",
    lambda c: f"# {c.words()}\non: push\njobs:\n  {c.word()}:\n    runs-on: ubuntu\n",
    lambda c: f"{c.word()}: {c.word()}\n",
)
_documents(
    "INI",
    "configparser (Python)",
    "https://docs.python.org/3/library/configparser.html",
    ".ini",
    lambda c: f"[{c.word()}]\nuser = {c.word()}\nport = {c.randrange(999)}\n",
    lambda c: f"; {c.words()}\n[main]\na = {c.word()}\n",
    lambda c: f'[{c.word()} "{c.word()}"]\n\turl = /{c.word()}\n',
)
_documents(
    "TOML",
    "TOML v1.0.0",
    "https://toml.io/en/v1.0.0",
    ".toml",
    lambda c: f'[package]\nname = "{c.word()}"\nversion = "0.{c.randrange(9)}.0"\n',
    lambda c: f'{c.word()} = "{c.word()}"\n[tool]\nlines = [1, {c.randrange(9)}]\n',
    lambda c: f"[[{c.word()}]]\nid = {c.randrange(9)}\n\n[[{c.word()}]]\nid = 2\n",
)
_documents(
    "XML",
    "Extensible Markup Language (XML) 1.0",
    "https://www.w3.org/TR/xml/",
    ".xml",
    lambda c: f'<?xml version="1.0"?>\n<{c.word()}><a>{c.words()}</a></x>\n',
    lambda c: f"<{c.word()}>\n  <a>{c.words()}</a>\n</x>\n",
    lambda c: f"<!-- {c.words()} -->\n<a/>\n",
)
_documents(
    "HTML",
    "HTML Standard",
    "https://html.spec.whatwg.org/",
    ".html",
    lambda c: f"<html><head><title>{c.words()}</title></head></html>\n",
    lambda c: f"<div>{c.words()}</div>\n<p>{c.words()}</p>\n",
    lambda c: f"<!DOCTYPE html>\n<p>{c.words()}\n",
)
_documents(
    "KML",
    "KML Reference",
    "https://developers.google.com/kml/documentation/kmlreference",
    ".kml",
    lambda c: f'<?xml version="1.0"?>\n<kml><Placemark><name>{c.word()}</name></Placemark></kml>\n',
    lambda c: f'<kml><Document id="{c.word()}"/></kml>\n',
)
_documents(
    "PEM and SSH keys",
    "RFC 7468: Textual Encodings of PKIX",
    "https://www.rfc-editor.org/rfc/rfc7468",
    ".pem",
    lambda c: f"-----BEGIN PRIVATE KEY-----\n{c.hexes(64)}\n-----END PRIVATE KEY-----\n",
    lambda c: (
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{c.hexes(64)}\n-----END OPENSSH PRIVATE KEY-----\n"
    ),
    lambda c: (
        f"Bag Attributes\n    friendlyName: {c.word()}\n-----BEGIN CERTIFICATE-----\n{c.hexes(64)}\n-----END CERTIFICATE-----\n"
    ),
)
_documents(
    "SSH public keys",
    "sshd(8): AUTHORIZED_KEYS FILE FORMAT",
    "https://man7.org/linux/man-pages/man8/sshd.8.html",
    "authorized_keys",
    lambda c: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{c.hexes(40)} {c.word()}@{c.host()}\n",
    lambda c: f"ssh-rsa AAAAB3NzaC1yc2E{c.hexes(80)} {c.word()}@{c.host()}\n",
)
_documents(
    "SQL",
    "SQL Syntax (PostgreSQL)",
    "https://www.postgresql.org/docs/current/sql-syntax.html",
    ".sql",
    lambda c: (
        f"CREATE TABLE {c.word()} (id int, name text);\nINSERT INTO a VALUES ({c.randrange(9)}, 'x');\n"
    ),
    lambda c: f"-- {c.words()}\nSELECT * FROM {c.word()} WHERE a = 1;\n",
    lambda c: (
        f"INSERT INTO {c.word()} VALUES ({c.randrange(9)}, '{c.word()}');\nINSERT INTO {c.word()} VALUES (2, 'b');\n"
    ),
    lambda c: f"select {c.word()},\n       b\nfrom {c.word()}\n",
)
_documents(
    "Java properties",
    "java.util.Properties (Java)",
    "https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html",
    ".properties",
    lambda c: f"{c.word()}.name={c.word()}\n{c.word()}.port={c.randrange(999)}\n",
    lambda c: f"#{c.at('%a %b %d %H:%M:%S UTC %Y')}\na.b={c.word()}\n",
    lambda c: f"{c.word()}.{c.word()} : {c.word()}\n! {c.word()}\n",
)
_documents(
    "Markdown",
    "CommonMark Spec",
    "https://spec.commonmark.org/0.31.2/",
    ".md",
    lambda c: f"# {c.words()}\n\n{c.words()}.\n\n- {c.word()}\n- {c.word()}\n",
    lambda c: f"{c.words().title()}\n=====\n\n1. {c.word()}\n2. {c.word()}\n",
    lambda c: f"---\ntitle: {c.word()}\n---\n\n{c.words()}\n",
    lambda c: f"* {c.words()}\n* [{c.word()}](https://example.com/{c.word()})\n",
)
_documents(
    "diff",
    "Detailed Description of Unified Format (GNU)",
    "https://www.gnu.org/software/diffutils/manual/html_node/Detailed-Unified.html",
    ".patch",
    lambda c: (
        f"diff --git a/{c.word()} b/{c.word()}\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{c.word()}\n+{c.word()}\n"
    ),
    lambda c: f"--- {c.word()}.c\n+++ {c.word()}.c\n@@ -1 +1 @@\n-a\n+b\n",
    lambda c: (
        f"From {c.hexes(40)} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.com>\nSubject: [PATCH] {c.words()}\n\n---\n"
    ),
    lambda c: f"{c.randrange(1, 99)}c{c.randrange(1, 99)}\n< {c.word()}\n---\n> {c.word()}\n",
)
_documents(
    "iCalendar and vCard",
    "RFC 5545: iCalendar",
    "https://www.rfc-editor.org/rfc/rfc5545",
    ".ics",
    lambda c: f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-A:{c.word()}\r\nEND:VCALENDAR\r\n",
    lambda c: f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{c.word()}\r\nEND:VCARD\r\n",
    lambda c: f"BEGIN:VEVENT\r\nSUMMARY:{c.words()}\r\nEND:VEVENT\r\n",
)
_documents(
    "Mail",
    "RFC 5322: Internet Message Format",
    "https://www.rfc-editor.org/rfc/rfc5322",
    ".eml",
    lambda c: (
        f"From: {c.word()}@example.com\nTo: b@example.com\nSubject: {c.words()}\n\n{c.words()}\n"
    ),
    lambda c: f"Delivered-To: {c.word()}@example.com\nSubject: {c.word()}\n\n{c.words()}\n",
    lambda c: f"Message-ID: <{c.hexes(16)}@example.com>\nFrom: a@example.com\n\n{c.words()}\n",
)
_documents(
    "mbox",
    "RFC 4155: The application/mbox Media Type",
    "https://www.rfc-editor.org/rfc/rfc4155",
    ".mbox",
    lambda c: (
        f"From {c.word()}@example.com {c.at('%a %b %e %H:%M:%S %Y')}\nSubject: {c.word()}\n\n{c.words()}\n\n"
    ),
)
_documents(
    "Subtitles",
    "SubRip file format (Library of Congress)",
    "https://www.loc.gov/preservation/digital/formats/fdd/fdd000569.shtml",
    ".srt",
    lambda c: f"{c.randrange(1, 99)}\n00:00:01,000 --> 00:00:04,000\n{c.words()}\n\n",
    lambda c: f"WEBVTT {c.word()}\n\n00:01.000 --> 00:04.000\n{c.words()}\n",
    lambda c: (
        f"[Script Info]\nTitle: {c.word()}\n\n[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,{c.words()}\n"
    ),
)
_documents(
    "FASTA",
    "FASTA format (NCBI BLAST)",
    "https://blast.ncbi.nlm.nih.gov/doc/blast-topics/",
    ".fasta",
    lambda c: f">sp|P{c.randrange(9999)}|{c.word()}\nMKTAYIAKQR\nQISFVKSHFS\n",
    lambda c: f">chr{c.randrange(22)}\nACGTNNACGT\n>chr{c.randrange(22)}\nTTGA\n",
    lambda c: f";{c.words()}\n>{c.word()}\nACGT\n",
)
_documents(
    "FASTQ",
    "The Sanger FASTQ file format (Nucleic Acids Research 38)",
    "https://doi.org/10.1093/nar/gkp1137",
    ".fq",
    lambda c: c.rows(lambda: f"@SRR{c.randrange(999)}.{c.randrange(99)} {c.word()}\nACGT\n+\nII#I"),
)
_documents(
    "SAM",
    "Sequence Alignment/Map Format Specification",
    _SAM,
    ".sam",
    lambda c: (
        f"@HD\tVN:1.6\tSO:{c.word()}\n@SQ\tSN:chr1\tLN:{c.randrange(9999)}\nr1\t0\tchr1\t7\t30\t4M\t*\t0\t0\tACGT\tIIII\n"
    ),
    lambda c: (
        f"@SQ\tSN:chr{c.randrange(22)}\tLN:{c.randrange(9999)}\nr1\t0\tchr1\t7\t30\t4M\t*\t0\t0\tACGT\tIIII\n"
    ),
    lambda c: c.rows(
        lambda: f"r{c.randrange(999)}\t0\tchr1\t{c.randrange(99)}\t30\t4M\t*\t0\t0\tACGT\tIIII"
    ),
)
_documents(
    "VCF",
    "The Variant Call Format Specification",
    "https://samtools.github.io/hts-specs/VCFv4.3.pdf",
    ".vcf",
    lambda c: (
        f"##fileformat=VCFv4.{c.randrange(1, 5)}\n##source={c.word()}\n#CHROM\tPOS\tID\n20\t{c.randrange(999)}\trs1\n"
    ),
    lambda c: f"#CHROM\tPOS\tID\t{c.word()}\n20\t{c.randrange(999)}\trs1\t0\n",
)
_documents(
    "GFF, BED and wiggle",
    "Frequently Asked Questions: Data File Formats (UCSC)",
    _UCSC,
    ".gff",
    lambda c: (
        f"##gff-version 3\nctg\t.\tgene\t{c.randrange(999)}\t9000\t.\t+\t.\tID=gene{c.randrange(9)}\n"
    ),
    lambda c: f"track name={c.word()} useScore=0\nchr1\t{c.randrange(999)}\t2000\n",
    lambda c: f"browser position chr{c.randrange(22)}:1-99\nchr1\t1\t2\n",
    lambda c: f"fixedStep chrom=chr{c.randrange(22)} start=1 step=1\n{c.randrange(9)}\n",
)
_documents(
    "BED",
    "Frequently Asked Questions: Data File Formats (UCSC)",
    _UCSC,
    ".bed",
    lambda c: c.rows(
        lambda: f"chr{c.randrange(22)}\t{c.randrange(999)}\t{c.randrange(9999)}\t{c.word()}"
    ),
)
_documents(
    "PDB",
    "Protein Data Bank Contents Guide",
    "https://www.wwpdb.org/documentation/file-format",
    ".pdb",
    lambda c: (
        f"HEADER    {c.word().upper()}            02-JAN-26   1ABC\nATOM      1  N   MET A   1      {c.randrange(99)}.340\nEND\n"
    ),
    lambda c: f"REMARK   1 {c.words()}\nATOM      1  N   MET A   1      27.340\nEND\n",
)
_documents(
    "CSS",
    "CSS Snapshot",
    "https://www.w3.org/TR/css/",
    ".css",
    lambda c: f".{c.word()} {{\n  color: red;\n}}\n",
    lambda c: f"/* {c.words()} */\nbody {{ margin: {c.randrange(9)}px }}\n",
    lambda c: f"@import url({c.word()}.css);\n#{c.word()} a:hover {{ top: 0 }}\n",
)
_documents(
    "Python source",
    "The Python Language Reference",
    "https://docs.python.org/3/reference/",
    ".py",
    lambda c: f"import {c.word()}\n\ndef {c.word()}(a):\n    return a\n",
    lambda c: f"from {c.word()} import {c.word()}\n\nx = {c.randrange(9)}\nprint(x)\n",
    lambda c: f"def {c.word()}():\n    pass\n",
    lambda c: f"print('{c.words()}')\n",
)
_documents(
    "C source",
    "ISO/IEC 9899 (C)",
    "https://www.open-std.org/jtc1/sc22/wg14/",
    ".c",
    lambda c: f"#include <{c.word()}.h>\n\nint main(void)\n{{\n    return {c.randrange(9)};\n}}\n",
    lambda c: f"/* {c.words()} */\nstatic int {c.word()} = 1;\n",
    lambda c: f"// {c.words()}\nvoid {c.word()}(void) {{}}\n",
)
_documents(
    "Java source",
    "The Java Language Specification",
    "https://docs.oracle.com/javase/specs/",
    ".java",
    lambda c: f"package com.{c.word()};\n\npublic class A {{\n}}\n",
    lambda c: f"import java.util.{c.word().title()};\n\nclass A {{}}\n",
    lambda c: f"public class {c.word().title()} {{\n    int a;\n}}\n",
)
_documents(
    "JavaScript",
    "ECMAScript Language Specification",
    "https://tc39.es/ecma262/",
    ".js",
    lambda c: f"const {c.word()} = require('{c.word()}');\n{c.word()}();\n",
    lambda c: f"import {{ {c.word()} }} from './{c.word()}.js';\n",
    lambda c: f"function {c.word()}(a) {{\n  return a;\n}}\n",
    lambda c: f"'use strict';var {c.word()}={c.randrange(9)};\n",
)
_documents(
    "Go and Rust source",
    "The Go Programming Language Specification",
    "https://go.dev/ref/spec",
    ".go",
    lambda c: f"package {c.word()}\n\nfunc main() {{\n}}\n",
    lambda c: f"use std::{c.word()};\n\nfn main() {{}}\n",
    lambda c: f"// {c.words()}\npackage {c.word()}\n",
)
_documents(
    "Shell",
    "Bash Reference Manual",
    "https://www.gnu.org/software/bash/manual/bash.html",
    ".sh",
    lambda c: f"#!/bin/bash -{c.choice('eux')}\necho {c.word()}\n",
    lambda c: f"export {c.word().upper()}={c.word()}\ncd /{c.word()}\n",
    lambda c: f"cd /{c.word()} && make {c.word()}\nif [ -f x ]; then\n  exit 1\nfi\n",
)
_documents(
    "Ruby, PHP and Perl source",
    "PHP Language Reference",
    "https://www.php.net/manual/en/langref.php",
    ".php",
    lambda c: f"<?php\necho '{c.word()}';\n",
    lambda c: f"require '{c.word()}'\n\nclass A\nend\n",
    lambda c: f"use {c.word().title()};\nmy $a = {c.randrange(9)};\n",
)
_documents(
    "LaTeX",
    "LaTeX2e: An unofficial reference manual",
    "https://latexref.xyz/",
    ".tex",
    lambda c: (
        f"\\documentclass{{{c.word()}}}\n\\begin{{document}}\n{c.words()}\n\\end{{document}}\n"
    ),
    lambda c: f"% {c.words()}\n\\section{{{c.word()}}}\n",
    lambda c: f"\\section{{{c.words()}}}\n{c.words()}.\n",
)
_documents(
    "Gherkin",
    "Gherkin Reference (Cucumber)",
    "https://cucumber.io/docs/gherkin/reference/",
    ".feature",
    lambda c: f"Feature: {c.words()}\n  Scenario: {c.word()}\n    Given {c.words()}\n",
    lambda c: f"@{c.word()}\nFeature: {c.word()}\n",
)
_documents(
    "Dockerfile",
    "Dockerfile reference",
    "https://docs.docker.com/reference/dockerfile/",
    "Dockerfile",
    lambda c: f'FROM {c.word()}:{c.randrange(9)}\nRUN make {c.word()}\nCMD ["a"]\n',
    lambda c: f"ARG {c.word().upper()}=1\nFROM {c.word()}\n",
    lambda c: f"# {c.words()}\nFROM {c.word()}\n",
)
_documents(
    "Makefile",
    "GNU make manual",
    "https://www.gnu.org/software/make/manual/make.html",
    "Makefile",
    lambda c: f"{c.word()}: {c.word()}.o\n\tcc -o a {c.word()}.o\n",
    lambda c: f"{c.word().upper()} := {c.word()}\n\nall:\n\techo a\n",
)
_documents(
    "robots.txt",
    "RFC 9309: Robots Exclusion Protocol",
    "https://www.rfc-editor.org/rfc/rfc9309",
    "robots.txt",
    lambda c: f"User-agent: {c.word()}bot\nDisallow: /{c.word()}/\n",
    lambda c: f"# {c.words()}\nUser-agent: *\nAllow: /\n",
    lambda c: f"Sitemap: https://{c.word()}.com/sitemap.xml\nUser-agent: *\nDisallow:\n",
)
_documents(
    "/etc/hosts",
    "hosts(5)",
    "https://man7.org/linux/man-pages/man5/hosts.5.html",
    "hosts",
    lambda c: f"127.0.0.1 localhost {c.host()}\n::1 localhost\n{c.ip()} {c.host()}\n",
    lambda c: f"# {c.words()}\n{c.ip()}\t{c.host()}\n",
    lambda c: f"{c.ip()} {c.host()} {c.word()}\n",
)
_documents(
    "crontab",
    "crontab(5)",
    "https://man7.org/linux/man-pages/man5/crontab.5.html",
    "crontab",
    lambda c: (
        f"*/{c.randrange(1, 59)} * * * * /usr/bin/{c.word()}\n0 3 * * 1 /usr/bin/{c.word()}\n"
    ),
    lambda c: f"SHELL=/bin/{c.word()}\n17 * * * * root {c.word()}\n",
    lambda c: f"@daily /usr/bin/{c.word()}\n",
)
_documents(
    ".env",
    "Environment variables (Docker Compose)",
    "https://docs.docker.com/compose/how-tos/environment-variables/",
    ".env",
    lambda c: (
        f"{c.word().upper()}_URL=https://example.com/{c.word()}\n{c.word().upper()}_KEY={c.hexes(16)}\n"
    ),
    lambda c: f"export {c.word().upper()}={c.word()}\nB=2\n",
    lambda c: f"# {c.words()}\nPORT={c.randrange(999)}\n",
)
_documents(
    "Requirements",
    "Requirements File Format (pip)",
    "https://pip.pypa.io/en/stable/reference/requirements-file-format/",
    "requirements.txt",
    lambda c: f"{c.word()}=={c.randrange(9)}.{c.randrange(9)}\n{c.word()}>=1.0\n",
    lambda c: f"-r {c.word()}.txt\n{c.word()}~=2.0\n",
    lambda c: f"# {c.words()}\n{c.word()}[extra]==1.{c.randrange(9)} ; python_version < '3'\n",
)
_documents(
    "go.mod and go.sum",
    "Go Modules Reference",
    "https://go.dev/ref/mod",
    "go.mod",
    lambda c: (
        f"module example.com/{c.word()}\n\ngo 1.22\n\nrequire (\n\texample.com/{c.word()} v1.0.0\n)\n"
    ),
    lambda c: (
        f"example.com/{c.word()} v1.{c.randrange(9)}.0 h1:{c.hexes(40)}=\nexample.com/{c.word()} v1.0.0/go.mod h1:{c.hexes(40)}=\n"
    ),
)
_documents(
    "Lock files",
    "Cargo.toml vs Cargo.lock (Cargo)",
    "https://doc.rust-lang.org/cargo/guide/cargo-toml-vs-cargo-lock.html",
    ".lock",
    lambda c: (
        f'# This file is generated by {c.word()}.\nversion = 3\n\n[[package]]\nname = "{c.word()}"\n'
    ),
    lambda c: (
        f"GEM\n  remote: https://{c.word()}.org/\n  specs:\n    {c.word()} (1.0)\n\nDEPENDENCIES\n  {c.word()}\n"
    ),
    lambda c: (
        f'"{c.word()}@^1.0.0":\n  version "1.0.{c.randrange(9)}"\n  resolved "https://example.com"\n'
    ),
)
_documents(
    "CODEOWNERS",
    "About code owners (GitHub)",
    "https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners",
    "CODEOWNERS",
    lambda c: f"* @{c.word()}\n/{c.word()}/ @{c.word()} @{c.word()}\n",
    lambda c: f"# {c.words()}\n*.js @{c.word()}\n",
    lambda c: f"/{c.word()}/* @example/{c.word()}\n",
)
_documents(
    "Ignore files",
    "gitignore (Git)",
    "https://git-scm.com/docs/gitignore",
    ".gitignore",
    lambda c: f"{c.word()}/\n*.{c.word()[:3]}\n!{c.word()}\n",
    lambda c: f"# {c.words()}\n/build\n",
    lambda c: f"*.{c.word()[:3]}\n/{c.word()}\n",
)
_documents(
    "Licence",
    "SPDX License List",
    "https://spdx.org/licenses/",
    "LICENSE",
    lambda c: (
        f"MIT License\n\nCopyright (c) 2026 {c.words()}\n\nPermission is hereby granted, free of charge, to any person\n"
    ),
    lambda c: (
        f'Copyright 2026 {c.words()}\n\nLicensed under the Apache License, Version 2.0 (the "License");\nyou may not use this file.\n'
    ),
    lambda c: (
        f'{c.words().title()} License\nVersion {c.randrange(9)}\n\n1. Definitions.\n\n"License" shall mean the terms.\n'
    ),
)
_documents(
    "Prose",
    "Plain text (RFC 2046, text/plain)",
    "https://www.rfc-editor.org/rfc/rfc2046",
    ".txt",
    lambda c: (
        f"{c.words(6, 9).capitalize()}, and {c.words(6, 9)}.\n{c.words(6, 9).capitalize()}.\n\n{c.words(6, 9).capitalize()}; {c.words(6, 9)}.\n"
    ),
    lambda c: (
        f"CHAPTER {c.randrange(99)}\n\n{c.words(6, 9).capitalize()} {c.words(6, 9)}\n{c.words(6, 9)}.\n"
    ),
    lambda c: f"Dear {c.word()},\n\n{c.words(6, 9)}.\n\nYours,\n{c.word()}\n",
)
_documents(
    "STL",
    "The StL Format (fabbers.com)",
    "https://www.fabbers.com/tech/STL_Format",
    ".stl",
    lambda c: (
        f"solid {c.word()}\nfacet normal 0 0 1\nouter loop\nvertex {c.randrange(9)} 0 0\nendloop\nendfacet\nendsolid\n"
    ),
)
_documents(
    "OBJ",
    "Wavefront OBJ File Format (Library of Congress)",
    "https://www.loc.gov/preservation/digital/formats/fdd/fdd000507.shtml",
    ".obj",
    lambda c: (
        f"v {c.random():.3f} {c.random():.3f} 1.0\nv {c.random():.3f} 1.0 0.0\nv 0 0 0\nf 1 2 3\n"
    ),
    lambda c: f"mtllib {c.word()}.mtl\nv {c.random():.3f} 0.0 0.0\nf 1 1 1\n",
    lambda c: f"# {c.words()}\no {c.word()}\nv 0.0 {c.random():.3f} 0.0\n",
)
_documents(
    "Base64",
    "RFC 4648: base64",
    "https://www.rfc-editor.org/rfc/rfc4648",
    ".b64",
    lambda c: base64.encodebytes(c.randbytes(150)).decode(),
    lambda c: base64.b64encode(c.randbytes(90)).decode(),
)
_documents(
    "Hex dump",
    "xxd(1)",
    "https://man7.org/linux/man-pages/man1/hexdump.1.html",
    ".hex",
    lambda c: "".join(
        f"{n * 16:08x}: {' '.join(c.hexes(4) for _ in range(8))}  ................\n"
        for n in range(4)
    ),
    lambda c: "".join(f"{n * 16:07x} {' '.join(c.hexes(4) for _ in range(8))}\n" for n in range(3)),
    lambda c: "".join(
        f"{n * 16:08x}  {' '.join(c.hexes(2) for _ in range(16))}  |................|\n"
        for n in range(3)
    ),
)
_documents(
    "Intel HEX and S-records",
    "Hexadecimal Object File Format Specification (Intel)",
    "https://archive.org/details/IntelHEXStandard",
    ".hex",
    lambda c: f":10010000{c.hexes(32).upper()}40\n:00000001FF\n",
    lambda c: f"S00F0000{c.hexes(24).upper()}3C\nS9030000FC\n",
)
_documents(
    "PostScript",
    "PostScript Language Document Structuring Conventions",
    "https://www.adobe.com/jp/print/postscript/pdfs/PLRM.pdf",
    ".eps",
    lambda c: (
        f"%!PS-Adobe-3.{c.randrange(9)} EPSF-3.0\n%%BoundingBox: 0 0 {c.randrange(99)} 9\nshowpage\n"
    ),
    lambda c: f"%!\n{c.randrange(9)} setlinewidth\nshowpage\n",
)
_documents(
    "RTF",
    "Rich Text Format (RTF) Specification",
    "https://www.loc.gov/preservation/digital/formats/fdd/fdd000473.shtml",
    ".rtf",
    lambda c: f"{{\\rtf1\\ansi\\deff{c.randrange(9)}\n{{\\b {c.words()}}}\\par\n}}\n",
)
_documents(
    "Uuencode and yEnc",
    "uuencode (POSIX)",
    "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/uuencode.html",
    ".uue",
    lambda c: f"begin 644 {c.word()}\n{binascii.b2a_uu(c.randbytes(30)).decode()}`\nend\n",
    lambda c: f"begin-base64 644 {c.word()}\n{base64.encodebytes(c.randbytes(40)).decode()}====\n",
)
_documents(
    "LDIF",
    "RFC 2849: The LDAP Data Interchange Format",
    "https://www.rfc-editor.org/rfc/rfc2849",
    ".ldif",
    lambda c: f"dn: cn={c.word()},dc=example\nobjectClass: person\ncn: {c.word()}\n\n",
    lambda c: f"# {c.words()}\nversion: 1\n\ndn: dc={c.word()}\ndc: a\n",
)
_documents(
    "Zone file",
    "RFC 1035: Domain names, master files",
    "https://www.rfc-editor.org/rfc/rfc1035",
    ".zone",
    lambda c: (
        f"$ORIGIN {c.word()}.example.\n$TTL 3600\n@ IN SOA ns1 a ( 1 2 3 4 5 )\n@ IN A {c.ip()}\n"
    ),
    lambda c: f"{c.word()}.example. 3600 IN A {c.ip()}\n{c.word()}.example. IN MX 10 mail\n",
    lambda c: f"; {c.words()}\n@ IN NS ns.{c.word()}.\n",
)
_documents(
    "nginx configuration",
    "Beginner's Guide: configuration file (nginx)",
    "https://nginx.org/en/docs/beginners_guide.html",
    ".conf",
    lambda c: f"server {{\n    listen {c.randrange(999)};\n    server_name {c.word()};\n}}\n",
    lambda c: f"upstream {c.word()} {{\n    server {c.ip()};\n}}\n",
    lambda c: f"user {c.word()};\nworker_processes {c.randrange(9)};\nevents {{}}\n",
)
_documents(
    "sshd_config",
    "sshd_config(5)",
    "https://man7.org/linux/man-pages/man5/sshd_config.5.html",
    "sshd_config",
    lambda c: f"Port {c.randrange(9999)}\nPermitRootLogin no\nAllowUsers {c.word()}\n",
    lambda c: f"# {c.words()}\nHost {c.word()}\n  HostName {c.host()}\n",
    lambda c: f"Host {c.word()}\n    User {c.word()}\n    Port 22\n",
)
_documents(
    "Apache configuration",
    "Configuration Files (Apache)",
    "https://httpd.apache.org/docs/current/configuring.html",
    "httpd.conf",
    lambda c: f"<VirtualHost *:{c.randrange(999)}>\n    ServerName {c.word()}\n</VirtualHost>\n",
    lambda c: f"Listen {c.randrange(999)}\nLoadModule {c.word()}_module modules/a.so\n",
)
_documents(
    "systemd unit",
    "systemd.syntax(7)",
    "https://www.freedesktop.org/software/systemd/man/latest/systemd.syntax.html",
    ".service",
    lambda c: f"[Unit]\nDescription={c.words()}\n\n[Service]\nExecStart=/usr/bin/{c.word()}\n",
    lambda c: f"[Timer]\nOnCalendar=daily\nUnit={c.word()}.service\n",
)
_documents(
    "JSON Schema",
    "JSON Schema",
    "https://json-schema.org/specification",
    ".schema.json",
    lambda c: json.dumps(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": c.word(),
            "type": "object",
        },
        indent=2,
    ),
    lambda c: (
        json.dumps(
            {"title": c.word(), "type": "object", "properties": {c.word(): {"type": "string"}}},
            indent=4,
        )
        + "\n"
    ),
)
_documents(
    "Terraform",
    "Configuration Syntax (Terraform)",
    "https://developer.hashicorp.com/terraform/language/syntax/configuration",
    ".tf",
    lambda c: f'resource "aws_s3_bucket" "{c.word()}" {{\n  bucket = "{c.word()}"\n}}\n',
    lambda c: f'variable "{c.word()}" {{\n  default = {c.randrange(9)}\n}}\n',
    lambda c: f'{c.word()} = "{c.word()}"\nregion = "us-east-1"\n',
)
_documents(
    "Protocol Buffers and GraphQL",
    "Language Guide (proto 3)",
    "https://protobuf.dev/programming-guides/proto3/",
    ".proto",
    lambda c: f'syntax = "proto3";\npackage {c.word()};\nmessage A {{ int32 b = 1; }}\n',
    lambda c: f"type {c.word().title()} {{\n  id: ID!\n}}\n",
    lambda c: f"message {c.word().title()} {{\n  string a = 1;\n}}\n",
)
_documents(
    "GraphViz and PlantUML",
    "DOT Language (Graphviz)",
    "https://graphviz.org/doc/info/lang.html",
    ".dot",
    lambda c: f"digraph {c.word()} {{\n  {c.word()} -> {c.word()};\n}}\n",
    lambda c: f"@startuml {c.word()}\n{c.word()} -> {c.word()}: hello\n@enduml\n",
)
_documents(
    "gettext",
    "The Format of PO Files (gettext)",
    "https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html",
    ".po",
    lambda c: f'msgid "{c.word()}"\nmsgstr "{c.word()}"\n\n',
    lambda c: f'#: src/{c.word()}.c:{c.randrange(99)}\nmsgid "a"\nmsgstr "b"\n',
)
_documents(
    "BibTeX",
    "BibTeX Format Description",
    "https://www.bibtex.org/Format/",
    ".bib",
    lambda c: f"@article{{{c.word()}{c.randrange(2000, 2026)},\n  title = {{{c.words()}}},\n}}\n",
)
_documents(
    "G-code",
    "G-Code (LinuxCNC)",
    "https://linuxcnc.org/docs/html/gcode.html",
    ".gcode",
    lambda c: f"G{c.choice(('20', '21', '90'))} ; {c.words()}\nG1 X{c.randrange(99)} Y1\nM2\n",
    lambda c: f"; {c.words()}\nG28\nG1 Z{c.randrange(9)}\n",
    lambda c: f"%\nO{c.randrange(9999)}\nG0 X0\n%\n",
)
_documents(
    "Ledger",
    "Ledger 3 documentation",
    "https://ledger-cli.org/doc/ledger3.html",
    ".ledger",
    lambda c: (
        f"{c.at('%Y/%m/%d')} {c.word()}\n    Expenses:Food    {c.randrange(99)} EUR\n    Assets:Cash\n\n"
    ),
)
_documents(
    "git commit objects",
    "git-log: pretty formats",
    "https://git-scm.com/docs/git-log",
    ".txt",
    lambda c: (
        f"commit {c.hexes(40)}\nAuthor: A <a@example.com>\nDate:   {c.at('%a %b %d %H:%M:%S %Y')} +0000\n\n    {c.words()}\n"
    ),
)
_documents(
    "ASCII art tables",
    "psql: aligned output",
    "https://www.postgresql.org/docs/current/app-psql.html",
    ".txt",
    lambda c: f" {c.word()} | {c.word()}\n----+----\n  {c.randrange(9)} | {c.word()}\n(1 row)\n",
    lambda c: (
        f"+----+----+\n| {c.word()} | {c.word()} |\n+----+----+\n| {c.randrange(9)} | a |\n+----+----+\n"
    ),
)
