"""Dagster: an asset that a cluster trains. A new run finds the job of a lost one again; a terminated run deletes it.

Use retries of runs, not a RetryPolicy: Dagster applies that to a terminated run too, which starts the job again.
"""

import dagster as dg

from spotladder.client import Jobs


class Training(dg.Config):
    job: str = "job.yaml"


@dg.asset
def model(context: dg.AssetExecutionContext, config: Training) -> dg.MaterializeResult:
    with Jobs() as jobs:
        name = jobs.submit(config.job, update=True)
        try:
            for line in jobs.logs(name, follow=True):
                context.log.info(line)
            outcome = jobs.wait(name)
        except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
            jobs.delete(name)
            raise
        if not outcome.succeeded:
            jobs.delete(name)  # a retry submits it again, and it continues from the newest commit
            raise dg.Failure(f"{name}: {outcome.reason}: {outcome.message}")
        paid = jobs.report(name)["cost"]["paid"]
    return dg.MaterializeResult(metadata={"job": name, "step": outcome.step, "paid_usd": paid})


defs = dg.Definitions(assets=[model])
