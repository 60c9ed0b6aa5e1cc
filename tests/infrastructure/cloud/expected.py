"""Uses of permissions that no request to the server shows: those of the services themselves.

What Step Functions, Lambda and EventBridge Scheduler do with the roles they are given, from their
developer guides (IAM policies for integrated services; Distributed Map; execution roles).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from compactor_local.definition import ACCOUNT, REGION, each_state
from tests.infrastructure.cloud.assembly import filled
from tests.infrastructure.cloud.deployment import Deployment, account_arn
from tests.infrastructure.cloud.iam import Call
from tests.infrastructure.configurations import VPC

State = Mapping[str, Any]
_EVENTS = ("PutTargets", "PutRule", "DescribeRule")
# A .sync integration that is not here is an error, and no answer.
_RULES: Mapping[str, str] = {
    "elasticmapreduce:createCluster.sync": "ForEMRRunJobFlow",
    "elasticmapreduce:addStep.sync": "ForEMRAddJobFlowSteps",
    "elasticmapreduce:terminateCluster.sync": "ForEMRTerminateJobFlows",
    "emr-serverless:startJobRun.sync": "sForEMRServerlessJob",
}
_CLUSTER = account_arn("elasticmapreduce", "cluster/j-2AXXXXXXGAPLF")


_INTERFACE = account_arn("ec2", "network-interface/eni-0123456789abcdef0")
#: What Lambda does with the role of a function in a VPC (AWSLambdaVPCAccessExecutionRole). The
#: subnet may be another account's.
TO_JOIN_A_VPC = (
    Call("ec2:CreateNetworkInterface", _INTERFACE),
    *(
        Call("ec2:CreateNetworkInterface", f"arn:aws:ec2:{REGION}:210987654321:subnet/{subnet}")
        for subnet in VPC["subnet_ids"]
    ),
    Call("ec2:CreateNetworkInterface", account_arn("ec2", "security-group/sg-0123456789abcdef0")),
    Call("ec2:DescribeNetworkInterfaces", "*"),
    Call("ec2:DescribeSubnets", "*"),
    *(
        Call(f"ec2:{action}", _INTERFACE)
        for action in (
            "DeleteNetworkInterface",
            "AssignPrivateIpAddresses",
            "UnassignPrivateIpAddresses",
        )
    ),
)


def of_the_workflow(found: State, deployment: Deployment, engine: str) -> set[Call]:
    """What a state machine's role is used for.

    Args:
        found: the state machine.
        deployment: the stack.
        engine: ``emr``, ``emr_serverless``, ``cluster`` for a running one, or ``none``: states
            of other ways to Spark than this are not entered.
    """
    machine, text = found["stateMachineArn"], found["definition"]
    wanted = _ENGINES[engine]
    calls: set[Call] = set()
    for name, state in each_state(json.loads(text)):
        if state.get("ItemProcessor", {}).get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED":
            calls.update(_map_run(machine, state["Label"]))
        integration = state.get("Resource", "").rpartition("states:::")[2]
        if integration == "lambda:invoke":
            calls.add(Call("lambda:InvokeFunction", state["Parameters"]["FunctionName"]))
        # Asked for when the machine is created, for states that are never entered, too.
        calls.update(_managed_rule(integration))
        if name in wanted or name == "RunQuery":
            calls.update(_INTEGRATIONS[integration](state["Parameters"], deployment))
    return calls


_ENGINES: Mapping[str, frozenset[str]] = {
    "none": frozenset(),
    "emr_serverless": frozenset({"RunServerlessJob", "MaintainServerless"}),
    "cluster": frozenset({"AddStepToCluster", "MaintainOnCluster"}),
    "emr": frozenset({"CreateCluster", "AddStep", "TerminateCluster", "TerminateAfterFailure"}),
}


def _map_run(machine: str, label: str) -> Iterator[Call]:
    yield Call("states:StartExecution", machine)
    execution = machine.replace(":stateMachine:", ":execution:")
    yield Call("states:DescribeExecution", f"{execution}:any")
    yield Call("states:StopExecution", f"{execution}:any")
    yield Call("states:RedriveExecution", f"{execution}/{label}:any")


def _managed_rule(integration: str) -> Iterator[Call]:
    # How far a query is, Step Functions asks Athena.
    if ".sync" in integration and not integration.startswith("athena:"):
        rule = account_arn("events", f"rule/StepFunctionsGetEvent{_RULES[integration]}Rule")
        yield from (Call(f"events:{action}", rule) for action in _EVENTS)


def _pass(role: str, service: str) -> Call:
    return Call("iam:PassRole", role, (("iam:PassedToService", f"{service}.amazonaws.com"),))


def _create_cluster(parameters: State, deployment: Deployment) -> Iterator[Call]:
    tags = [(tag["Key"], tag["Value"]) for tag in parameters["Tags"] if "Value" in tag]
    asked = tuple((f"aws:RequestTag/{key}", value) for key, value in tags)
    yield Call("elasticmapreduce:RunJobFlow", "*", asked)
    yield Call("elasticmapreduce:AddTags", _CLUSTER, asked)
    yield from _on_cluster("DescribeCluster", "TerminateJobFlows")
    if "AutoTerminationPolicy" in parameters:
        yield from _on_cluster("PutAutoTerminationPolicy")
    (service,) = [arn for arn in deployment.policies if arn.endswith(parameters["ServiceRole"])]
    yield _pass(service, "elasticmapreduce")
    yield _pass(deployment.profiles[parameters["JobFlowRole"]], "ec2")
    service = "elasticmapreduce.amazonaws.com"
    yield Call(
        "iam:CreateServiceLinkedRole",
        f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/AWSServiceRoleForEMRCleanup",
        (("iam:AWSServiceName", service),),
    )


def _on_cluster(*actions: str) -> Iterator[Call]:
    # A cluster of this workflow; one that others run is allowed by its id, whatever its tags.
    tag = ("aws:ResourceTag/application", "s3-compactor")
    return (Call(f"elasticmapreduce:{action}", _CLUSTER, (tag,)) for action in actions)


def _add_step(_: State, __: Deployment) -> Iterator[Call]:
    yield from _on_cluster("AddJobFlowSteps", "DescribeStep", "CancelSteps")


def _terminate_cluster(_: State, __: Deployment) -> Iterator[Call]:
    yield from _on_cluster("DescribeCluster", "TerminateJobFlows")


def _start_job_run(parameters: State, _: Deployment) -> Iterator[Call]:
    application = account_arn("emr-serverless", f"/applications/{parameters['ApplicationId']}")
    yield Call("emr-serverless:StartJobRun", application)
    for action in ("GetJobRun", "CancelJobRun", "TagResource"):
        yield Call(f"emr-serverless:{action}", f"{application}/jobruns/any")
    yield _pass(parameters["ExecutionRoleArn"], "emr-serverless")


def _run_query(parameters: State, _: Deployment) -> Iterator[Call]:
    group = account_arn("athena", f"workgroup/{parameters['WorkGroup']}")
    for action in ("StartQueryExecution", "StopQueryExecution", "GetQueryExecution"):
        yield Call(f"athena:{action}", group)
    yield Call("athena:GetDataCatalog", account_arn("athena", "datacatalog/AwsDataCatalog"))


_INTEGRATIONS: Mapping[str, Callable[[State, Deployment], Iterator[Call]]] = {
    "elasticmapreduce:createCluster.sync": _create_cluster,
    "elasticmapreduce:addStep.sync": _add_step,
    "elasticmapreduce:terminateCluster.sync": _terminate_cluster,
    "emr-serverless:startJobRun.sync": _start_job_run,
    "athena:startQueryExecution.sync": _run_query,
}


def of_a_function(deployment: Deployment, name: str) -> set[Call]:
    """What Lambda itself uses a function's role for: its log, and its traces where it has any."""
    configuration = deployment.functions[name]
    resources = deployment.assembly.resources("AWS::Lambda::Function")
    (properties,) = (
        found for one, found in resources.items() if deployment.physical_ids[one] == name
    )
    group = f"/aws/lambda/{name}"
    if "LoggingConfig" in properties:
        group = deployment.physical_ids[properties["LoggingConfig"]["LogGroup"]["Ref"]]
    stream = account_arn("logs", f"log-group:{group}:log-stream:any")
    calls = {Call(f"logs:{action}", stream) for action in ("CreateLogStream", "PutLogEvents")}
    if properties.get("TracingConfig", {}).get("Mode") == "Active":
        calls |= {
            Call(f"xray:{action}", "*") for action in ("PutTraceSegments", "PutTelemetryRecords")
        }
    assert configuration["Role"]
    return calls


def of_the_spark_job(deployment: Deployment, given: Mapping[str, Any]) -> set[Call]:
    """What the Spark job does: reading sources, outputs and state; writing the last two; its code.

    Args:
        deployment: the stack.
        given: a run's input.
    """
    state = _place(deployment.outputs["StateUri"])
    source, destination = _place(given["s3_source_uri"]), _place(given["s3_destination_uri"])
    calls = {_on_object("GetObject", place, "a.json") for place in (source, destination, state)}
    calls |= {_listing(place) for place in (source, destination, state)}
    calls |= {
        _on_object(action, place, key)
        for place, key in ((destination, "day/a.json"), (state, "runs/1/spark-result.json"))
        for action in ("PutObject", "AbortMultipartUpload")
    }
    calls.add(_on_object("PutObject", state, "spark-logs/driver/stderr.gz"))
    calls.add(Call("s3:ListBucketMultipartUploads", f"arn:aws:s3:::{destination[0]}"))
    for bucket, key in assets(deployment):
        calls.add(Call("s3:GetObject", f"arn:aws:s3:::{bucket}/{key}"))
    return calls


def of_rewriting(locations: Sequence[str], tables: Sequence[str]) -> set[Call]:
    """What whoever rewrites tables does: Athena, by the workflow's role, and the Spark job.

    Args:
        locations: where they lie.
        tables: ``database/table`` of those in Glue.
    """
    calls = set()
    for place in map(_place, locations):
        calls.add(_listing(place))
        for action in ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"):
            calls.add(_on_object(action, place, "t/data/1.parquet"))
    for name in tables:
        database = name.partition("/")[0]
        for resource in ("catalog", f"database/{database}", f"table/{name}"):
            arn = account_arn("glue", resource)
            calls |= {Call(f"glue:{action}", arn) for action in ("GetTable", "UpdateTable")}
    return calls


def of_querying(deployment: Deployment, tables: Sequence[str]) -> set[Call]:
    """What Athena's statements need of Glue and of the place of their results.

    From "Configure access to databases and tables in the AWS Glue Data Catalog" in Athena's user
    guide, and the managed policy AmazonAthenaFullAccess.

    Args:
        deployment: the stack.
        tables: ``database/table`` of those in Glue.
    """
    place = _place(f"{deployment.outputs['StateUri']}athena-results/")
    calls = {
        _on_object(action, place, "1.csv")
        for action in ("GetObject", "PutObject", "AbortMultipartUpload", "ListMultipartUploadParts")
    }
    for action in ("GetBucketLocation", "ListBucketMultipartUploads"):
        calls.add(Call(f"s3:{action}", f"arn:aws:s3:::{place[0]}"))
    for resource in ("catalog", "database/default"):
        calls.add(Call("glue:GetDatabase", account_arn("glue", resource)))
    for name in tables:
        for resource in ("catalog", f"database/{name.partition('/')[0]}", f"table/{name}"):
            arn = account_arn("glue", resource)
            reads = ("GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartitions")
            calls |= {Call(f"glue:{action}", arn) for action in reads}
    return calls


def of_decrypting_assets(deployment: Deployment) -> set[Call]:
    """What the Spark job does to its code where ``cdk bootstrap`` was given a customer's key.

    With and without a bucket key, which changes what S3 tells KMS.
    """
    return {
        Call(
            "kms:Decrypt",
            account_arn("kms", "key/aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"),
            (
                ("kms:ViaService", f"s3.{REGION}.amazonaws.com"),
                ("kms:EncryptionContext:aws:s3:arn", arn),
            ),
        )
        for bucket, key in assets(deployment)
        for arn in (f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/{key}")
    }


def assets(deployment: Deployment) -> Iterator[tuple[str, str]]:
    """Bucket and key of each asset that the Spark job is made of.

    Args:
        deployment: the stack.
    """
    machines = deployment.assembly.resources("AWS::StepFunctions::StateMachine").values()
    told = [one["DefinitionSubstitutions"] for one in machines]
    (given,) = [one for one in told if "SparkScriptUri" in one]
    for name in ("SparkScriptUri", "SparkAppZipUri", "SparkDepsZipUri"):
        yield _place(_text(given[name]))
    for uri in _text(given["SparkTableConf"]).removeprefix("spark.jars=").split(","):
        if uri.startswith("s3://cdk-"):
            yield _place(uri)


def of_clean_up(deployment: Deployment, given: Mapping[str, Any]) -> set[Call]:
    """What the clean-up function does; deleting is not among it, which not every deployment does.

    Args:
        deployment: the stack.
        given: a run's input.
    """
    state = _place(deployment.outputs["StateUri"])
    destination = _place(given["s3_destination_uri"])
    calls = {_on_object("GetObject", place, "day/a.json") for place in (destination, state)}
    calls |= {_listing(place) for place in (destination, state)}
    # Of the root partition, and of another.
    records = ("partitions/cleaned/1.json", "partitions/day/cleaned/1.json")
    receipt = "runs/1/clean-ups/day-1.json"
    calls |= {_on_object("PutObject", state, key) for key in (*records, receipt)}
    calls.add(Call("s3:ListBucketMultipartUploads", f"arn:aws:s3:::{destination[0]}"))
    calls.add(_on_object("AbortMultipartUpload", destination, "day/a.json"))
    return calls


def of_deleting(given: Mapping[str, Any], key: str | None) -> set[Call]:
    """What is done to a source: it is deleted by ETag, and looked at where that did not succeed.

    Args:
        given: a run's input.
        key: ARN of the KMS key that encrypts the sources, if one does.
    """
    source = _place(given["s3_source_uri"])
    calls = {_on_object(action, source, "day/a.json") for action in ("DeleteObject", "GetObject")}
    calls.add(_listing(source))
    if key is not None:
        calls.add(Call("kms:Decrypt", key))
    return calls


def of_the_plan_of_a_clean_up(deployment: Deployment) -> set[Call]:
    """What the function does that finds what is past retention."""
    state = _place(deployment.outputs["StateUri"])
    return {
        _listing(state),
        _on_object("GetObject", state, "partitions/day/commits/1.json.gz"),
        _on_object("PutObject", state, "runs/1/clean-up.json"),
    }


def _place(uri: str) -> tuple[str, str]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix


def _on_object(action: str, place: tuple[str, str], key: str) -> Call:
    return Call(f"s3:{action}", f"arn:aws:s3:::{place[0]}/{place[1]}{key}")


def _listing(place: tuple[str, str]) -> Call:
    return Call("s3:ListBucket", f"arn:aws:s3:::{place[0]}", (("s3:prefix", f"{place[1]}day/"),))


def _text(value: Any) -> str:
    if isinstance(value, Mapping) and "Fn::Join" in value:
        between, parts = value["Fn::Join"]
        return str(between).join(map(_text, parts))
    return filled(value["Fn::Sub"] if isinstance(value, Mapping) else value)


def of_the_schedule(target: Mapping[str, Any]) -> set[Call]:
    """What the scheduler uses the role of a schedule's target for."""
    action = "lambda:InvokeFunction" if ":lambda:" in target["Arn"] else "states:StartExecution"
    calls = {Call(action, target["Arn"])}
    if "DeadLetterConfig" in target:
        calls.add(Call("sqs:SendMessage", target["DeadLetterConfig"]["Arn"]))
    return calls
