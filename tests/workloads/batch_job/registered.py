"""A pytest plugin that registers the kind, before any test imports the API's models."""

from __future__ import annotations

from spotladder.api import workload_kinds

workload_kinds.KINDS = (
    *workload_kinds.KINDS,
    workload_kinds.RegisteredKind(
        "batch",
        "A program without Ray (Job).",
        schema="tests.workloads.batch_job.schema:BatchWorkload",
        kind="tests.workloads.batch_job.kind:BATCH_JOB",
    ),
)
