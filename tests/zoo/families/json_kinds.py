"""JSON in all its frames."""

from __future__ import annotations

import json

from tests.zoo.kinds import TEXT, Kind, js, rows, spaced
from tests.zoo.readers import (
    document,
    json_document,
    json_elements,
    json_lines,
    json_stream,
)

_RFC_URL = "https://www.rfc-editor.org/rfc/rfc8259"
_LINES_URL = "https://jsonlines.org/"


def _item(c) -> dict[str, object]:
    return {"id": c.randrange(9999), "name": c.word(), "tags": [c.word()], "in": {}}


def _lines_arrays(c):
    head = '["Name", "Session", "Score", "Completed"]\n'
    return head + c.rows(lambda: json.dumps([c.word(), "2013", c.randrange(99), True]))


def _lines_cut(c):
    text = c.rows(lambda: js(**_item(c)))
    return text[: -c.randint(2, 30)] if c.number % 2 else text


def _undelimited_cut(c):
    text = "".join(js(**_item(c)) for _ in range(3))
    return text[: -c.randint(2, 20)] if c.number % 2 else text


def _wikidata(c):
    rows = (js(id=f"Q{c.randrange(999)}", type="item", labels={}) for _ in range(3))
    return "[\n" + ",\n".join(rows) + "\n]"


_ICEBERG_URL = "https://iceberg.apache.org/spec/#table-metadata-fields"
_DELTA_URL = "https://github.com/delta-io/delta/blob/master/PROTOCOL.md"
_OCI_URL = "https://github.com/opencontainers/image-spec/blob/main/spec.md"
_NPM_URL = "https://docs.npmjs.com/cli/configuring-npm/package-json"


def _digest(c) -> str:
    return f"sha256:{c.hexes(64)}"


def _layer(c, kind_of: str) -> dict[str, object]:
    media = f"application/vnd.oci.image.{kind_of}"
    return {"mediaType": media, "digest": _digest(c), "size": c.randrange(9_999)}


def _delta(c):
    commit = js(commitInfo={"timestamp": c.randrange(10**12), "operation": "WRITE"})
    add = {"path": f"part-{c.hexes(8)}.parquet", "partitionValues": {}, "size": 9}
    return commit + "\n" + js(add={**add, "modificationTime": 1, "dataChange": True}) + "\n"


def _cluster_event(c):
    name = {"name": c.word(), "namespace": "default"}
    return js(apiVersion="v1", kind="Event", metadata=name, reason="Pulled", message=c.word())


def _image(c):
    layers = [_layer(c, "layer.v1.tar+gzip")]
    return js(schemaVersion=2, config=_layer(c, "config.v1+json"), layers=layers)


# fmt: off
KINDS = (
    Kind("JSON lines", ".jsonl", json_lines, _LINES_URL,
         lambda c: c.unended(c.rows(lambda: js(**_item(c))))),
    Kind("JSON lines, CRLF", ".jsonl", json_lines, _LINES_URL,
         lambda c: c.rows(lambda: js(**_item(c)), end="\r\n")),
    Kind("JSON lines with a BOM", ".ldjson", json_lines, "https://github.com/ndjson/ndjson-spec",
         lambda c: "\ufeff" + c.rows(lambda: js(**_item(c)))),
    Kind("JSON lines with blank lines", ".json", json_lines, _LINES_URL,
         lambda c: "\n" + c.rows(lambda: js(**_item(c)) + "\n")),
    Kind("JSON lines of arrays", ".jsonl", json_lines, _LINES_URL, _lines_arrays, declared=TEXT),
    Kind("JSON lines of scalars", ".jsonl", json_lines, _LINES_URL,
         rows(lambda c: c.choice((f'"{c.word()}"', "1.5", "null", "true"))), declared=TEXT),
    Kind("JSON lines, last one cut off", ".jsonl", json_lines, _LINES_URL, _lines_cut,
         expected="joined, open_end"),
    Kind("JSON lines, line separators in strings", ".json", json_lines, _RFC_URL,
         rows(lambda c: '{"a":"\u2028\u2029\x85","b":"' + c.word() + '"}')),
    Kind("JSON lines with invalid UTF-8", ".jsonl", json_lines, _RFC_URL,
         lambda c: c.rows(lambda: '{"name":"Müller","id":' + str(c.randrange(99)) + "}").encode(
         "latin-1"), expected="unknown_encoding"),
    Kind("Undelimited JSON", "", json_stream, "https://docs.python.org/3/library/json.html",
         lambda c: "".join(js(**_item(c)) for _ in range(c.randint(2, 6)))),
    Kind("Undelimited JSON, cut off", "", json_stream,
         "https://docs.python.org/3/library/json.html", _undelimited_cut,
         expected="joined, open_end"),
    Kind("JSON array", ".json", json_document, _RFC_URL,
         lambda c: json.dumps([_item(c) for _ in range(4)])),
    Kind("JSON array over lines", ".json", json_document, _RFC_URL,
         lambda c: "[\n" + ",\n".join(js(**_item(c)) for _ in range(4)) + "\n]\n"),
    Kind("JSON array of one", ".json", json_document, _RFC_URL, lambda c: json.dumps([_item(c)])),
    Kind("JSON array, empty", ".json", json_document, _RFC_URL,
         lambda c: c.pick(("[]", "[]\n", "[ ]"))),
    Kind("JSON array, pretty-printed", ".json", json_document,
         "https://docs.python.org/3/library/json.html",
         lambda c: json.dumps([_item(c) for _ in range(3)], indent=4) + "\n"),
    Kind("JSON array, as lines", ".json", json_elements, _RFC_URL,
         lambda c: json.dumps([_item(c) for _ in range(3)], indent=2 if c.number % 2 else None),
         declared={"format": "json_array_lines"}),
    Kind("JSON array of numbers", ".json", document, _RFC_URL,
         lambda c: json.dumps([c.randrange(99) for _ in range(3)]), expected="unknown_format"),
    Kind("JSON arrays, two behind each other", ".json", document, _RFC_URL,
         lambda c: "\n".join(json.dumps([_item(c)]) for _ in range(2)) + "\n",
         expected="unknown_format"),
    Kind("JSON-LD, expanded", ".json", document, "https://www.w3.org/TR/json-ld11/",
         lambda c: json.dumps([{"@id": "_:b0", "http://schema.org/name": [{"@value": c.word()}]}]),
         expected="unknown_format"),
    Kind("Pretty JSON", ".json", json_document, "https://docs.python.org/3/library/json.html",
         lambda c: json.dumps(_item(c), indent=4) + "\n", expected="unknown_format"),
    Kind("Pretty JSON, several behind each other", ".json", json_stream,
         "https://jqlang.org/manual/",
         lambda c: "".join(json.dumps(_item(c), indent=2) + "\n" for _ in range(3)),
         expected="unknown_format"),
    Kind("JSON with comments", ".jsonc", document,
         "https://code.visualstudio.com/docs/languages/json",
         lambda c: f'// made by hand\n{{\n  "a": 1, // {c.word()}\n  "b": [1, 2,],\n}}\n',
         expected="unknown_format"),
    Kind("JSON text sequence", ".json-seq", document, "https://www.rfc-editor.org/rfc/rfc7464",
         rows(lambda c: "\x1e" + json.dumps(_item(c), indent=1)), expected="unknown_format"),
    Kind("Newline-delimited GeoJSON", ".geojsonl", json_lines,
         "https://gdal.org/en/stable/drivers/vector/geojsonseq.html",
         rows(lambda c: js(type="Feature", geometry={"type": "Point", "coordinates": [1, 2]},
            properties={"n": c.randrange(99)}))),
    Kind("JSON scalar", ".json", json_lines, _RFC_URL,
         lambda c: c.pick(('"text"', "42", "true", "null", "-1.5e3")), expected="unknown_format"),
    Kind("Wikidata dump", ".json", json_document,
         "https://www.mediawiki.org/wiki/Wikibase/DataModel/JSON", _wikidata),
    Kind("GitHub Archive", "2026-01-02-0.json", json_lines, "https://www.gharchive.org/",
         rows(lambda c: js(id=str(c.randrange(10**10)), type="PushEvent", payload={"commits": []},
            created_at=c.iso()))),
    Kind("JSON lines with duplicate members", ".json", json_lines, _RFC_URL,
         rows(lambda c: '{"a":1,"a":2,"b":"' + c.word() + '"}')),
    Kind("JSON lines with NaN", ".json", json_lines, "https://docs.python.org/3/library/json.html",
         rows(lambda c: spaced(a=float("nan"), b=c.word()))),
    Kind("JSON lines with deep values", ".json", json_lines, _RFC_URL, lambda c: c.rows(
         lambda: '{"a":' + "[" * 400 + c.choice(("1", "{}")) + "]" * 400 + "}", 1, 3)),
    Kind("Iceberg table metadata", ".json", json_lines, _ICEBERG_URL, lambda c: js(**{
          "format-version": 2, "table-uuid": c.hexes(32), "location": "s3://lake/t",
          "last-sequence-number": c.randrange(99), "last-updated-ms": c.randrange(10**12),
          "last-column-id": 1, "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
          "snapshots": []})),
    Kind("Delta commit", ".json", json_lines, _DELTA_URL, _delta),
    Kind("Kubernetes events, one an object", ".json", json_lines,
         "https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/",
         _cluster_event),
    Kind("Events that name their schema", ".json", json_lines,
         "https://wikitech.wikimedia.org/wiki/Event_Platform/EventStreams_HTTP_Service",
         lambda c: js(**{"$schema": "/mediawiki/recentchange/1.0.0", "id": c.randrange(9999),
               "type": "edit", "title": c.word()})),
    Kind("package.json", ".json", json_lines, _NPM_URL,
         lambda c: js(name=c.word(), version="1.0.0", scripts={"test": "jest"},
            dependencies={c.word(): "^1.2.3"})),
    Kind("OCI image manifest", "", json_lines, _OCI_URL, _image),
    Kind("Settings, one object a file", ".json", json_lines,
         "https://developer.mozilla.org/en-US/docs/Learn_web_development/Core/Scripting/JSON",
         lambda c: js(**{f"{c.word()}-{c.hexes(12)}": {"on": True}, f"_{c.hexes(12)}": 1})),
)
# fmt: on
