"""Prefect: a flow that trains on a cluster. A retry finds the job again; a cancelled run deletes it."""

from prefect import flow, get_run_logger
from prefect.exceptions import TerminationSignal

from spotladder.client import Jobs


@flow(retries=2, retry_delay_seconds=60)
def train(job: str = "job.yaml") -> float:
    """Returns what the job has cost, in USD."""
    logger = get_run_logger()
    with Jobs() as jobs:
        name = jobs.submit(job, update=True)
        try:
            for line in jobs.logs(name, follow=True):
                logger.info(line)
            outcome = jobs.wait(name)
        except (KeyboardInterrupt, TerminationSignal):
            jobs.delete(name)
            raise
        if not outcome.succeeded:
            jobs.delete(name)  # a retry submits it again, and it continues from the newest commit
            raise RuntimeError(f"{name}: {outcome.reason}: {outcome.message}")
        return jobs.report(name)["cost"]["paid"]
