"""Airflow: an operator that is deferred while a cluster trains, and returns what the job has cost, in USD.

Put this file where workers and the triggerer import it from, such as the folder of plugins, and use it in a DAG:
`Train(task_id="train", job="/opt/airflow/jobs/job.yaml", retries=2)`. A retry finds the job again. A user who marks the
task as failed, or clears it, deletes the job.
"""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from spotladder.client import AsyncJobs, Jobs


class JobEnded(BaseTrigger):
    """Waits in the triggerer until the job has ended."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.JobEnded", {"name": self.name}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with AsyncJobs() as jobs:
            yield TriggerEvent(asdict(await jobs.wait(self.name)))

    async def on_kill(self) -> None:
        async with AsyncJobs() as jobs:
            await jobs.delete(self.name)


class Train(BaseOperator):
    template_fields = ("job",)

    def __init__(self, *, job: str, **options: Any) -> None:
        super().__init__(**options)
        self.job = job

    def execute(self, context: Any) -> None:
        with Jobs() as jobs:
            self.defer(trigger=JobEnded(jobs.submit(self.job, update=True)), method_name="ended")

    def ended(self, context: Any, event: dict[str, Any]) -> float:
        name = event["name"]
        with Jobs() as jobs:
            for line in jobs.logs(name, tail=100):
                self.log.info(line)
            if event["exit_code"] != 0:
                jobs.delete(name)  # a retry submits it again, and it continues from the newest commit
                raise AirflowException(f"{name}: {event['reason']}: {event['message']}")
            paid = jobs.report(name)["cost"]["paid"]
        self.log.info("%s has cost %s USD", name, paid)
        return paid
