"""A training loop that shows every lost, repeated or foreign step: each step hashes the result of the previous one.

Two workers of Ray Train, or those of an elastic job, wait for each other in every step, as with an all-reduce. The
program reports each finished step to the test (STEPS=address:port), which can therefore count repeated steps.
"""

import argparse
import hashlib
import os
import socket
import threading
import time
import uuid
from typing import Any

from spotladder import train


def loop(config: dict[str, Any]) -> None:
    from ray.train.collective import barrier

    job, value, start = train.current(), "", 0
    with job.resume() as found:
        if found:
            value, start = (found.path / "value").read_text(), found.step
    teller, own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), uuid.uuid4().hex
    address, _, port = os.environ["STEPS"].partition(":")
    for step in job.steps(start, config["steps"]):
        if step == config["hangs_at"] and (job.attempt, job.rank) == (1, 1):
            threading.Event().wait()
        barrier()
        time.sleep(config["pace"])
        value = hashlib.sha256(f"{value}{step}".encode()).hexdigest()
        if job.rank == 0:
            teller.sendto(f"{job.namespace}/{job.name} {job.attempt} {own} {step}".encode(), (address, int(port)))
        if job.should_commit(step):
            with job.commit(step, {"loss": 1 / step}) as folder:
                (folder / "value").write_text(value)


if __name__ == "__main__":
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pace", type=float, default=0.2, help="seconds a step takes")
    parser.add_argument("--hangs-at", type=int, default=0, help="the step at which rank 1 of the first attempt hangs")
    options = parser.parse_args()
    trainer = DataParallelTrainer(
        loop,
        train_loop_config=vars(options),
        scaling_config=train.ray_scaling_config(2),
        run_config=train.ray_run_config(total=options.steps),
    )
    trainer.fit()
