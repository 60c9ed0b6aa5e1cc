"""Bridges for the Distributed Map of moto's interpreter.

moto 5.2.5 starts one thread per permitted child whatever the number of items, goes from child
to child by recursion (which ends near 1,000), drops why a child failed, looks the paths of a
ResultWriter up in the wrong place, writes the results of any Map Run of the execution, and a
manifest that names no results. Here a Map Run has as many threads as there are slots, each of
them a loop, and its own results are written the way AWS writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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

from compactor_cli.local.patching import replace

# Attributes given to moto's objects: of a record its results and label, of an environment the
# record of the Map Run that was the last to run in it, whose results a ResultWriter writes.
_RESULTS, _LABEL, _RECORD = "local_results", "local_label", "local_map_run"


def install(*, slots: int, on_child: Callable[[str, bool], None]) -> None:
    """Apply the bridges to this process.

    Args:
        slots: how many children run at once at most.
        on_child: told of every ended child the label of its Map, and whether it succeeded.
    """
    replace(iteration.DistributedIterationComponent, "_map_run", _runner(slots))
    replace(worker.DistributedItemProcessorWorker, "eval", _looper(on_child))
    replace(result_writer_decl.ResultWriter, "_eval_body", _evaluate_writer)
    replace(writer.ResourceEvalS3, "_handle_put_object", staticmethod(_write_results))


def _runner(slots: int) -> Callable[[Any, Any, Any], None]:
    def run(component: Any, env: Any, eval_input: Any) -> None:
        items = env.stack.pop()
        record = eval_input.map_run_record
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


def _looper(on_child: Callable[[str, bool], None]) -> Callable[[Any], None]:
    def run_children(self: Any) -> None:
        record = self._map_run_record
        job = self._job_pool.next_job()
        while job is not None:
            frame = self._env.open_inner_frame()
            self._eval_job(env=frame, job=job)
            result = _result(job, frame.program_state())
            getattr(record, _RESULTS).append(result)
            on_child(getattr(record, _LABEL) or "", result["Status"] == "SUCCEEDED")
            self._env.delete_frame(frame)
            following = None if self.stopped() else self._job_pool.next_job()
            self._job_pool.close_job(job)
            job = following
            # moto keeps every thread it ever started.
            utils.TMP_THREADS[:] = [thread for thread in utils.TMP_THREADS if thread.is_alive()]

    return run_children


def _result(job: Any, state: Any) -> dict[str, Any]:
    """One child's line in the results, a part of what AWS writes."""
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
    # moto looks the writer's paths up in the results; AWS in the state's input.
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
