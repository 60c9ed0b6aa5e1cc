"""Patches for the Distributed Map of moto's interpreter.

moto 5.2.5 starts one thread per permitted child regardless of the number of items, iterates over
children by recursion (which fails near 1,000), drops the error of a failed child, resolves the
paths of a ResultWriter against the wrong input, writes the results of any Map Run of the execution,
with a manifest that names no results, and does not parse an ItemBatcher. Here a Map Run has one
thread per slot, each of which loops over children; items are batched; and its own results are
written in the form that AWS writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moto.stepfunctions.parser import utils
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import (
    distributed_iteration_component as iteration,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration.itemprocessor import (
    distributed_item_processor_worker as worker,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration.job import JobPool
from moto.stepfunctions.parser.asl.component.state.exec.state_map.result_writer import (
    result_writer_decl,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_map.result_writer.resource_eval import (  # noqa: E501 - moto's own module path
    resource_eval_s3 as writer,
)
from moto.stepfunctions.parser.asl.eval.program_state import ProgramEnded, ProgramError

from compactor_local import replace
from compactor_local.definition import each_state

# Attributes added to moto's objects: a record's results and label, and an environment's
# last Map Run, whose results a ResultWriter writes.
_RESULTS, _LABEL, _RECORD = "local_results", "local_label", "local_map_run"
_BATCHED = "local_batched"

#: Called with the label of the Map, the items, and the success of every ended child.
OnChild = Callable[[str, Sequence[Any], bool], None]


#: An ItemBatcher as the definition has it.
Batcher = Mapping[str, Any]


def batched(
    batcher: Batcher, items: Sequence[Any], state_input: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the inputs of the children, each with a batch of consecutive items."""
    most_items = state_input[batcher["MaxItemsPerBatchPath"].removeprefix("$.")]
    most_bytes = batcher["MaxInputBytesPerBatch"]
    common = {
        name.removesuffix(".$"): state_input[path.removeprefix("$.")]
        for name, path in batcher["BatchInput"].items()
    }
    batches: list[list[Any]] = []
    batch_bytes = 0
    for item in items:
        item_bytes = len(json.dumps(item))
        is_full = batches and len(batches[-1]) == most_items
        if not batches or is_full or batch_bytes + item_bytes > most_bytes:
            batches.append([])
            batch_bytes = 0
        batches[-1].append(item)
        batch_bytes += item_bytes
    return [{"BatchInput": common, "Items": batch} for batch in batches]


def without_batchers(text: str) -> tuple[str, dict[str, Batcher]]:
    """Return a definition without ItemBatchers, which moto cannot parse, and these by Map label."""
    machine = json.loads(text)
    batchers: dict[str, Batcher] = {}
    for _, state in each_state(machine):
        if "ItemBatcher" in state:
            batchers[state["Label"]] = state.pop("ItemBatcher")  # type: ignore[attr-defined] # of json.loads
    return json.dumps(machine), batchers


def install(*, slots: int, on_child: OnChild, batchers: Mapping[str, Batcher]) -> None:
    """Apply the patches to this process.

    Args:
        slots: maximum number of concurrent children.
        on_child: see :data:`OnChild`.
        batchers: label of a Map -> its ItemBatcher.
    """
    replace(iteration.DistributedIterationComponent, "_map_run", _runner(slots, batchers))
    replace(worker.DistributedItemProcessorWorker, "eval", _looper(on_child))
    replace(result_writer_decl.ResultWriter, "_eval_body", _evaluate_writer)
    replace(writer.ResourceEvalS3, "_handle_put_object", staticmethod(_write_results))


def _runner(slots: int, batchers: Mapping[str, Batcher]) -> Callable[[Any, Any, Any], None]:
    def run(component: Any, env: Any, eval_input: Any) -> None:
        items = env.stack.pop()
        record = eval_input.map_run_record
        batcher = batchers.get(eval_input.label)
        setattr(record, _BATCHED, batcher is not None)
        if batcher is not None:
            items = batched(batcher, items, env.states.get_input())
        setattr(record, _RESULTS, [])
        setattr(record, _LABEL, eval_input.label)
        setattr(env, _RECORD, record)
        pool = JobPool(job_program=component._get_iteration_program(), job_inputs=items)
        for _ in range(min(len(items), slots, record.max_concurrency or slots)):
            component._launch_worker(env=env, eval_input=eval_input, job_pool=pool)
        pool.await_jobs()
        if (error := pool.get_worker_exception()) is not None:
            raise error
        env.stack.append([job.job_output for job in pool.get_closed_jobs()])

    return run


def _looper(on_child: OnChild) -> Callable[[Any], None]:
    def run_children(self: Any) -> None:
        record = self._map_run_record
        job = self._job_pool.next_job()
        while job is not None:
            frame = self._env.open_inner_frame()
            self._eval_job(env=frame, job=job)
            result = _result(job, frame.program_state())
            getattr(record, _RESULTS).append(result)
            items = job.job_input["Items"] if getattr(record, _BATCHED) else [job.job_input]
            on_child(getattr(record, _LABEL) or "", items, result["Status"] == "SUCCEEDED")
            self._env.delete_frame(frame)
            following = None if self.stopped() else self._job_pool.next_job()
            self._job_pool.close_job(job)
            job = following
            # moto keeps every thread that it started.
            utils.TMP_THREADS[:] = [thread for thread in utils.TMP_THREADS if thread.is_alive()]

    return run_children


def _result(job: Any, state: Any) -> dict[str, Any]:
    """Return one child's entry in the results, with some of the fields that AWS writes."""
    result = {"Name": str(job.job_index), "Input": json.dumps(job.job_input)}
    if isinstance(state, ProgramEnded):
        return {**result, "Status": "SUCCEEDED", "Output": json.dumps(job.job_output)}
    error = (state.error or {}) if isinstance(state, ProgramError) else {}
    return {
        **result,
        "Status": "FAILED",
        "Error": error.get("error", "States.Runtime"),
        "Cause": error.get("cause", ""),
    }


def _evaluate_writer(self: Any, env: Any) -> None:
    # moto resolves the writer's paths in the results; AWS in the state's input.
    env.stack.append(env.states.get_input())
    self.parargs.eval(env=env)
    parameters = env.stack.pop()
    env.stack[-1] = parameters
    self.resource_eval.eval_resource(env=env)


def _write_results(env: Any, resource_runtime_part: Any, state_credentials: Any) -> None:
    parameters = env.stack.pop()
    env.stack.pop()
    client = writer.ResourceEvalS3._get_s3_client(resource_runtime_part, state_credentials)
    record = getattr(env, _RECORD)
    results = sorted(getattr(record, _RESULTS), key=lambda result: int(result["Name"]))
    bucket, prefix = parameters["Bucket"], parameters.get("Prefix", "")
    home = prefix + ("/" if prefix and not prefix.endswith("/") else "")
    home += record.map_run_arn.split(":")[-1]

    def put(name: str, body: Any) -> dict[str, Any]:
        data = json.dumps(body).encode("utf-8")
        client.put_object(Bucket=bucket, Key=f"{home}/{name}", Body=data)
        return {"Key": f"{home}/{name}", "Size": len(data)}

    files: dict[str, list[dict[str, Any]]] = {"FAILED": [], "PENDING": [], "SUCCEEDED": []}
    for status in ("FAILED", "SUCCEEDED"):
        if some := [result for result in results if result["Status"] == status]:
            files[status].append(put(f"{status}_0.json", some))
    manifest = {
        "DestinationBucket": bucket,
        "MapRunArn": record.map_run_arn,
        "ResultFiles": files,
    }
    key = put("manifest.json", manifest)["Key"]
    details = {"Bucket": bucket, "Key": key}
    env.stack.append({"MapRunArn": record.map_run_arn, "ResultWriterDetails": details})
