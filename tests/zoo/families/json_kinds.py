"""JSON in all its frames."""

from __future__ import annotations

import json

from tests.zoo.families.text import EITHER, JOINED, LEFT, js, kind, spaced
from tests.zoo.readers import (
    document,
    json_document,
    json_elements,
    json_lines,
    json_sequence,
    json_stream,
)

_RFC = "RFC 8259: The JavaScript Object Notation (JSON) Data Interchange Format"
_RFC_URL = "https://www.rfc-editor.org/rfc/rfc8259"
_LINES = "JSON Lines"
_LINES_URL = "https://jsonlines.org/"


def _item(chance) -> dict[str, object]:
    return {"id": chance.randrange(9999), "name": chance.word(), "tags": [chance.word()], "in": {}}


@kind("JSON lines", page=_LINES, url=_LINES_URL, reader=json_lines, verdict=JOINED, ending=".jsonl")
def _lines(chance):
    return chance.unended(chance.rows(lambda: js(**_item(chance))))


@kind("JSON lines, CRLF", page=_LINES, url=_LINES_URL, reader=json_lines, verdict=JOINED,
      ending=".jsonl")  # fmt: skip
def _lines_crlf(chance):
    return chance.rows(lambda: js(**_item(chance)), end="\r\n")


@kind("JSON lines with a BOM", page="LDJSON: Newline Delimited JSON",
      url="https://github.com/ndjson/ndjson-spec", reader=json_lines, verdict=JOINED,
      ending=".ldjson")  # fmt: skip
def _lines_bom(chance):
    return "\ufeff" + chance.rows(lambda: js(**_item(chance)))


@kind("JSON lines with blank lines", page=_LINES, url=_LINES_URL, reader=json_lines, verdict=JOINED,
      ending=".json")  # fmt: skip
def _lines_blank(chance):
    return "\n" + chance.rows(lambda: js(**_item(chance)) + "\n")


@kind("JSON lines of arrays", page=_LINES, url=_LINES_URL, reader=json_lines, verdict=EITHER,
      ending=".jsonl")  # fmt: skip
def _lines_arrays(chance):
    head = '["Name", "Session", "Score", "Completed"]\n'
    return head + chance.rows(
        lambda: json.dumps([chance.word(), "2013", chance.randrange(99), True])
    )


@kind("JSON lines of scalars", page=_LINES, url=_LINES_URL, reader=json_lines, verdict=EITHER,
      ending=".jsonl")  # fmt: skip
def _lines_scalars(chance):
    return chance.rows(lambda: chance.choice((f'"{chance.word()}"', "1.5", "null", "true")))


@kind("JSON lines, last one cut off", page=_LINES, url=_LINES_URL, reader=json_lines,
      verdict=EITHER, ending=".jsonl")  # fmt: skip
def _lines_cut(chance):
    text = chance.rows(lambda: js(**_item(chance)))
    return text[: -chance.randint(2, 30)] if chance.number % 2 else text


@kind("JSON lines, line separators in strings", page="RFC 7159 and ECMA-262: U+2028",
      url=_RFC_URL, reader=json_lines, verdict=JOINED, ending=".json")  # fmt: skip
def _lines_separators(chance):
    return chance.rows(lambda: '{"a":"\u2028\u2029\x85","b":"' + chance.word() + '"}')


@kind("JSON lines with invalid UTF-8", page=_RFC, url=_RFC_URL, reader=json_lines, verdict=EITHER,
      ending=".jsonl")  # fmt: skip
def _lines_latin(chance):
    return chance.rows(lambda: '{"name":"Müller","id":' + str(chance.randrange(99)) + "}").encode(
        "latin-1"
    )


@kind("Undelimited JSON", page="Concatenated JSON (Firehose, json.JSONDecoder.raw_decode)",
      url="https://docs.python.org/3/library/json.html", reader=json_stream, verdict=JOINED,
      ending="")  # fmt: skip
def _undelimited(chance):
    return "".join(js(**_item(chance)) for _ in range(chance.randint(2, 6)))


@kind("Undelimited JSON, cut off", page="Concatenated JSON (Firehose)",
      url="https://docs.python.org/3/library/json.html", reader=json_stream, verdict=EITHER,
      ending="")  # fmt: skip
def _undelimited_cut(chance):
    text = "".join(js(**_item(chance)) for _ in range(3))
    return text[: -chance.randint(2, 20)] if chance.number % 2 else text


@kind("JSON array", page=_RFC, url=_RFC_URL, reader=json_document, verdict=JOINED, ending=".json")
def _array(chance):
    return json.dumps([_item(chance) for _ in range(4)])


@kind("JSON array over lines", page=_RFC, url=_RFC_URL, reader=json_document, verdict=JOINED,
      ending=".json")  # fmt: skip
def _array_lines(chance):
    return "[\n" + ",\n".join(js(**_item(chance)) for _ in range(4)) + "\n]\n"


@kind("JSON array of one", page=_RFC, url=_RFC_URL, reader=json_document, verdict=JOINED,
      ending=".json")  # fmt: skip
def _array_one(chance):
    return json.dumps([_item(chance)])


@kind("JSON array, empty", page=_RFC, url=_RFC_URL, reader=json_document, verdict=EITHER,
      ending=".json")  # fmt: skip
def _array_empty(chance):
    return chance.pick(("[]", "[]\n", "[ ]"))


@kind("JSON array, pretty-printed", page="json.tool (Python)",
      url="https://docs.python.org/3/library/json.html", reader=json_document, verdict=JOINED,
      ending=".json")  # fmt: skip
def _array_pretty(chance):
    return json.dumps([_item(chance) for _ in range(3)], indent=4) + "\n"


@kind("JSON array, as lines", page=_RFC, url=_RFC_URL, reader=json_elements, verdict=JOINED,
      ending=".json", given={"documents": "lines"})  # fmt: skip
def _array_as_lines(chance):
    return json.dumps([_item(chance) for _ in range(3)], indent=2 if chance.number % 2 else None)


@kind("JSON array of numbers", page=_RFC, url=_RFC_URL, reader=document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _array_numbers(chance):
    return json.dumps([chance.randrange(99) for _ in range(3)])


@kind("JSON array of arrays", page=_RFC, url=_RFC_URL, reader=document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _array_nested(chance):
    return json.dumps([[chance.randrange(9), chance.word()] for _ in range(3)])


@kind("JSON arrays, two behind each other", page=_RFC, url=_RFC_URL, reader=document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _arrays_two(chance):
    return "\n".join(json.dumps([_item(chance)]) for _ in range(2)) + "\n"


@kind("JSON-LD, expanded", page="JSON-LD 1.1", url="https://www.w3.org/TR/json-ld11/",
      reader=document, verdict=LEFT, ending=".json")  # fmt: skip
def _linked_expanded(chance):
    return json.dumps([{"@id": "_:b0", "http://schema.org/name": [{"@value": chance.word()}]}])


@kind("Pretty JSON", page="json.tool (Python)",
      url="https://docs.python.org/3/library/json.html", reader=json_document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _pretty(chance):
    return json.dumps(_item(chance), indent=4) + "\n"


@kind("Pretty JSON, several behind each other", page="jq manual: output",
      url="https://jqlang.org/manual/", reader=json_stream, verdict=EITHER, ending=".json")  # fmt: skip
def _pretty_stream(chance):
    return "".join(json.dumps(_item(chance), indent=2) + "\n" for _ in range(3))


@kind("Pretty JSON, Classic Mac OS line ends", page=_RFC, url=_RFC_URL, reader=json_document,
      verdict=LEFT, ending=".json")  # fmt: skip
def _pretty_cr(chance):
    return json.dumps(_item(chance), indent=1).replace("\n", "\r")


@kind("JSON with comments", page="JSON with Comments (Visual Studio Code)",
      url="https://code.visualstudio.com/docs/languages/json", reader=document, verdict=LEFT,
      ending=".jsonc")  # fmt: skip
def _comments(chance):
    return f'// made by hand\n{{\n  "a": 1, // {chance.word()}\n  "b": [1, 2,],\n}}\n'


@kind("JSON5", page="The JSON5 Data Interchange Format", url="https://spec.json5.org/",
      reader=document, verdict=LEFT, ending=".json5")  # fmt: skip
def _json5(chance):
    return f"{{\n  unquoted: 'and {chance.word()}',\n  hex: 0xdecaf,\n  last: +1,\n}}\n"


@kind("JSON text sequence", page="RFC 7464: JSON Text Sequences",
      url="https://www.rfc-editor.org/rfc/rfc7464", reader=json_sequence, verdict=EITHER,
      ending=".json-seq")  # fmt: skip
def _sequence(chance):
    return chance.rows(lambda: "\x1e" + json.dumps(_item(chance), indent=1))


@kind("GeoJSON", page="RFC 7946: The GeoJSON Format", url="https://www.rfc-editor.org/rfc/rfc7946",
      reader=document, verdict=LEFT, ending=".geojson")  # fmt: skip
def _geo(chance):
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, n]}, "properties": {}}
        for n in range(chance.randint(1, 3))
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, indent=1)


@kind("GeoJSON text sequence", page="RFC 8142: GeoJSON Text Sequences",
      url="https://www.rfc-editor.org/rfc/rfc8142", reader=json_sequence, verdict=EITHER,
      ending=".geojsons")  # fmt: skip
def _geo_sequence(chance):
    return chance.rows(
        lambda: "\x1e" + js(type="Feature", geometry=None, properties={"n": chance.randrange(99)})
    )


@kind("Newline-delimited GeoJSON", page="GeoJSONSeq driver (GDAL)",
      url="https://gdal.org/en/stable/drivers/vector/geojsonseq.html", reader=json_lines,
      verdict=JOINED, ending=".geojsonl")  # fmt: skip
def _geo_lines(chance):
    return chance.rows(
        lambda: js(type="Feature", geometry={"type": "Point", "coordinates": [1, 2]},
                   properties={"n": chance.randrange(99)})
    )  # fmt: skip


@kind("Jupyter notebook", page="The Notebook file format",
      url="https://nbformat.readthedocs.io/en/latest/format_description.html", reader=document,
      verdict=LEFT, ending=".ipynb")  # fmt: skip
def _notebook(chance):
    cells = [{"cell_type": "markdown", "metadata": {}, "source": [f"# {chance.word()}\n"]}]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1) + "\n"


@kind("JSON-LD of schema.org", page="JSON-LD 1.1", url="https://www.w3.org/TR/json-ld11/",
      reader=document, verdict=LEFT, ending=".jsonld")  # fmt: skip
def _linked(chance):
    thing = {"@context": "https://schema.org", "@type": "Person", "name": chance.word()}
    return json.dumps(thing, indent=2)


@kind("JSON scalar", page=_RFC, url=_RFC_URL, reader=json_lines, verdict=EITHER, ending=".json")
def _scalar(chance):
    return chance.pick(('"text"', "42", "true", "null", "-1.5e3"))


@kind("JSON string over the whole object", page=_RFC, url=_RFC_URL, reader=json_lines, verdict=EITHER,
      ending=".json")  # fmt: skip
def _string(chance):
    return json.dumps(js(**_item(chance)))


@kind("JSONP", page="MDN: JSONP", url="https://developer.mozilla.org/en-US/docs/Glossary/JSONP",
      reader=document, verdict=LEFT, ending=".js")  # fmt: skip
def _jsonp(chance):
    return f"callback({js(**_item(chance))});"


@kind("Wikidata dump", page="Wikibase/DataModel/JSON: one array, an entity a line",
      url="https://www.mediawiki.org/wiki/Wikibase/DataModel/JSON", reader=json_document,
      verdict=JOINED, ending=".json")  # fmt: skip
def _wikidata(chance):
    rows = (js(id=f"Q{chance.randrange(999)}", type="item", labels={}) for _ in range(3))
    return "[\n" + ",\n".join(rows) + "\n]"


@kind("Document with an items array", page="AWS CLI output: JSON",
      url="https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-output-format.html",
      reader=document, verdict=LEFT, ending=".json")  # fmt: skip
def _cli(chance):
    instances = [{"InstanceId": f"i-{chance.hexes(8)}", "State": {"Name": "running"}}]
    return json.dumps({"Reservations": [{"Instances": instances}]}, indent=4)


@kind("Terraform state", page="State (Terraform)",
      url="https://developer.hashicorp.com/terraform/language/state", reader=document,
      verdict=LEFT, ending=".tfstate")  # fmt: skip
def _terraform(chance):
    return (
        json.dumps({"version": 4, "serial": chance.randrange(99), "resources": []}, indent=2) + "\n"
    )


@kind("GitHub Archive", page="GH Archive", url="https://www.gharchive.org/", reader=json_lines,
      verdict=JOINED, ending="2026-01-02-0.json")  # fmt: skip
def _github(chance):
    return chance.rows(
        lambda: js(id=str(chance.randrange(10**10)), type="PushEvent", payload={"commits": []},
                   created_at=chance.iso())
    )  # fmt: skip


@kind("JSON lines with duplicate members", page=_RFC, url=_RFC_URL, reader=json_lines,
      verdict=JOINED, ending=".json")  # fmt: skip
def _duplicates(chance):
    return chance.rows(lambda: '{"a":1,"a":2,"b":"' + chance.word() + '"}')


@kind("JSON lines with NaN", page="json: Infinite and NaN Number Values (Python)",
      url="https://docs.python.org/3/library/json.html", reader=json_lines, verdict=EITHER,
      ending=".json")  # fmt: skip
def _nan(chance):
    return chance.rows(lambda: spaced(a=float("nan"), b=chance.word()))


@kind("JSON lines with deep values", page=_RFC, url=_RFC_URL, reader=json_lines, verdict=EITHER,
      ending=".json")  # fmt: skip
def _deep(chance):
    return chance.rows(
        lambda: '{"a":' + "[" * 400 + chance.choice(("1", "{}")) + "]" * 400 + "}", 1, 3
    )
