"""Documents of tools that are one JSON object, written on one line: each is read as a whole."""

from __future__ import annotations

import json

from tests.zoo.families.text import JOINED, LEFT, js, kind
from tests.zoo.readers import document, json_lines

_ICEBERG = "Iceberg Table Spec: Table Metadata"
_ICEBERG_URL = "https://iceberg.apache.org/spec/#table-metadata-fields"
_DELTA = "Delta Transaction Log Protocol"
_DELTA_URL = "https://github.com/delta-io/delta/blob/master/PROTOCOL.md"
_OCI = "OCI Image Format Specification"
_OCI_URL = "https://github.com/opencontainers/image-spec/blob/main/spec.md"
_KUBERNETES = "Objects In Kubernetes"
_KUBERNETES_URL = "https://kubernetes.io/docs/concepts/overview/working-with-objects/"
_CLOUDFORMATION = "CloudFormation template sections"
_CLOUDFORMATION_URL = (
    "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html"
)
_NPM = "package.json (npm)"
_NPM_URL = "https://docs.npmjs.com/cli/configuring-npm/package-json"
_STATE = "State (Terraform)"
_STATE_URL = "https://developer.hashicorp.com/terraform/language/state"


def _digest(chance) -> str:
    return f"sha256:{chance.hexes(64)}"


def _layer(chance, kind_of: str) -> dict[str, object]:
    media = f"application/vnd.oci.image.{kind_of}"
    return {"mediaType": media, "digest": _digest(chance), "size": chance.randrange(9_999)}


@kind("Iceberg table metadata", page=_ICEBERG, url=_ICEBERG_URL, reader=document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _iceberg(chance):
    return js(
        **{
            "format-version": 2,
            "table-uuid": chance.hexes(32),
            "location": "s3://lake/t",
            "last-sequence-number": chance.randrange(99),
            "last-updated-ms": chance.randrange(10**12),
            "last-column-id": 1,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
            "snapshots": [],
        }
    )


@kind("Delta commit", page=_DELTA, url=_DELTA_URL, reader=document, verdict=LEFT, ending=".json")
def _delta(chance):
    commit = js(commitInfo={"timestamp": chance.randrange(10**12), "operation": "WRITE"})
    add = {"path": f"part-{chance.hexes(8)}.parquet", "partitionValues": {}, "size": 9}
    return commit + "\n" + js(add={**add, "modificationTime": 1, "dataChange": True}) + "\n"


@kind("Delta commit, its first", page=_DELTA, url=_DELTA_URL, reader=document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _delta_first(chance):
    schema = json.dumps({"type": "struct", "fields": []})
    return "\n".join(
        (
            js(protocol={"minReaderVersion": 1, "minWriterVersion": 2}),
            js(metaData={"id": chance.hexes(32), "schemaString": schema, "partitionColumns": []}),
        )
    )


@kind("Delta version checksum", page=_DELTA, url=_DELTA_URL, reader=document, verdict=LEFT,
      ending=".crc")  # fmt: skip
def _delta_sums(chance):
    size = chance.randrange(9_999)
    return js(tableSizeBytes=size, numFiles=1, numMetadata=1, numProtocol=1, setTransactions=[])


@kind("Hudi commit", page="Timeline (Apache Hudi)", url="https://hudi.apache.org/docs/timeline",
      reader=document, verdict=LEFT, ending=".commit")  # fmt: skip
def _hudi(chance):
    stats = {"a": [{"fileId": chance.hexes(32), "numWrites": 1}]}
    return js(
        partitionToWriteStats=stats, compacted=False, extraMetadata={}, operationType="UPSERT"
    )


@kind("CloudFormation template", page=_CLOUDFORMATION, url=_CLOUDFORMATION_URL, reader=document,
      verdict=LEFT, ending=".template.json")  # fmt: skip
def _template(chance):
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": chance.word()}}
    version = {} if chance.number % 2 else {"AWSTemplateFormatVersion": "2010-09-09"}
    return js(**version, Resources={"Bucket": bucket})


@kind("Kubernetes manifest", page=_KUBERNETES, url=_KUBERNETES_URL, reader=document, verdict=LEFT,
      ending=".json")  # fmt: skip
def _manifest(chance):
    if chance.number % 2:
        data = {"level": chance.word()}
        return js(apiVersion="v1", kind="ConfigMap", metadata={"name": chance.word()}, data=data)
    spec = {"replicas": chance.randrange(9)}
    return js(apiVersion="apps/v1", kind="Deployment", metadata={"name": chance.word()}, spec=spec)


@kind("Kubernetes events, one an object", page="Event v1 (Kubernetes API)",
      url="https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/",
      reader=json_lines, verdict=JOINED, ending=".json")  # fmt: skip
def _cluster_event(chance):
    name = {"name": chance.word(), "namespace": "default"}
    return js(apiVersion="v1", kind="Event", metadata=name, reason="Pulled", message=chance.word())


@kind("JSON Schema", page="JSON Schema: Core", url="https://json-schema.org/draft/2020-12",
      reader=document, verdict=LEFT, ending=".schema.json")  # fmt: skip
def _schema(chance):
    properties = {chance.word(): {"type": "string"}}
    if chance.number % 2:
        return js(type="object", properties=properties)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return js(**{"$schema": dialect, "title": chance.word(), "enum": [chance.word()]})


@kind("Events that name their schema", page="EventStreams HTTP Service (Wikimedia)",
      url="https://wikitech.wikimedia.org/wiki/Event_Platform/EventStreams_HTTP_Service",
      reader=json_lines, verdict=JOINED, ending=".json")  # fmt: skip
def _with_schema(chance):
    return js(**{"$schema": "/mediawiki/recentchange/1.0.0", "id": chance.randrange(9999),
                 "type": "edit", "title": chance.word()})  # fmt: skip


@kind("Avro schema", page="Apache Avro Specification: Schema Declaration",
      url="https://avro.apache.org/docs/1.12.0/specification/", reader=document, verdict=LEFT,
      ending=".avsc")  # fmt: skip
def _avro(chance):
    if chance.number % 2:
        return js(type="enum", name=chance.word(), symbols=["A", "B"])
    return js(type="record", name=chance.word(), fields=[{"name": "n", "type": "long"}])


@kind("Source map", page="Source Map (ECMA-426)", url="https://tc39.es/ecma426/", reader=document,
      verdict=LEFT, ending=".js.map")  # fmt: skip
def _source_map(chance):
    return js(version=3, sources=[f"{chance.word()}.ts"], names=[], mappings="AAAA,SAASA")


@kind("package.json", page=_NPM, url=_NPM_URL, reader=document, verdict=LEFT, ending=".json")
def _package(chance):
    return js(name=chance.word(), version="1.0.0", scripts={"test": "jest"},
              dependencies={chance.word(): "^1.2.3"})  # fmt: skip


@kind("package-lock.json", page=_NPM, url=_NPM_URL, reader=document, verdict=LEFT, ending=".json")
def _lock(chance):
    return js(name=chance.word(), version="1.0.0", lockfileVersion=3, packages={})


@kind("Terraform state, on one line", page=_STATE, url=_STATE_URL, reader=document, verdict=LEFT,
      ending=".tfstate")  # fmt: skip
def _state(chance):
    told = {} if chance.number % 2 else {"terraform_version": "1.9.0"}
    return js(
        version=4, **told, serial=chance.randrange(99), lineage=chance.hexes(32), resources=[]
    )


@kind("OCI image manifest", page=_OCI, url=_OCI_URL, reader=document, verdict=LEFT, ending="")
def _image(chance):
    layers = [_layer(chance, "layer.v1.tar+gzip")]
    return js(schemaVersion=2, config=_layer(chance, "config.v1+json"), layers=layers)


@kind("OCI image index", page=_OCI, url=_OCI_URL, reader=document, verdict=LEFT, ending=".json")
def _index(chance):
    return js(schemaVersion=2, manifests=[_layer(chance, "manifest.v1+json")])


@kind("OCI image configuration", page=_OCI, url=_OCI_URL, reader=document, verdict=LEFT, ending="")
def _image_config(chance):
    rootfs = {"type": "layers", "diff_ids": [_digest(chance)]}
    return js(architecture="amd64", os="linux", config={"Cmd": ["sh"]}, rootfs=rootfs, history=[])


@kind("Settings, one object a file", page="JSON (MDN): working with JSON",
      url="https://developer.mozilla.org/en-US/docs/Learn_web_development/Core/Scripting/JSON",
      reader=document, verdict=LEFT, ending=".json")  # fmt: skip
def _settings(chance):
    return js(**{f"{chance.word()}-{chance.hexes(12)}": {"on": True}, f"_{chance.hexes(12)}": 1})
