"""Flyte: a task that trains on a cluster. A retry finds the job again; an aborted execution deletes it."""

import signal
import sys

from flytekit import task, workflow

from spotladder.client import Jobs


@task(retries=2)
def train(job: str) -> float:
    """Returns what the job has cost, in USD."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # how Kubernetes ends the pod of an aborted task
    with Jobs() as jobs:
        name = jobs.submit(job, update=True)
        try:
            for line in jobs.logs(name, follow=True):
                print(line)
            outcome = jobs.wait(name)
        except (KeyboardInterrupt, SystemExit):
            jobs.delete(name)
            raise
        if not outcome.succeeded:
            jobs.delete(name)  # a retry submits it again, and it continues from the newest commit
            raise RuntimeError(f"{name}: {outcome.reason}: {outcome.message}")
        return float(jobs.report(name)["cost"]["paid"])


@workflow
def training(job: str = "job.yaml") -> float:
    return train(job=job)
