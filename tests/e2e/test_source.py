"""The files of a laptop in the pods: `spotladder submit --working-dir`, with images that do not have the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.world import PROGRAMS, E2eCluster

JOB = """\
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {{name: job}}
spec:
  tiers:
  - name: spot
    capacityTier: {namespace}-spot
    provisionTimeout: 3m
    overrides: {{env: {{STEPS: "{steps}"}}}}
  - name: on-demand
    capacityTier: {namespace}-on-demand
    provisionTimeout: 3m
    overrides: {{env: {{STEPS: "{steps}"}}}}
  grace: 20s
  checkpoints: {{uri: "{uri}", interval: 5steps, credentials: {{secretName: bucket}}}}
  train: {{script: train.py, workers: 2, framework: ray, image: "{image}"}}
"""

HELPER = """\
from chain import loop as chain


def loop(config):  # a module of the archive: Ray's workers import it by its name
    import words

    print(f"this is the {words.EDITION} edition", flush=True)
    chain(config)
"""

SCRIPT = """\
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

import helper
from spotladder import train

DataParallelTrainer(
    helper.loop,
    train_loop_config={"steps": 100, "pace": 0.2, "hangs_at": 0},
    scaling_config=train.ray_scaling_config(2),
    run_config=train.ray_run_config(total=100),
).fit()
"""


def submit(e2e: E2eCluster, folder: Path) -> None:
    file = folder.parent / "job.yaml"
    about = {"uri": e2e.checkpoints["uri"], "image": e2e.image, "steps": e2e.reported.address}
    file.write_text(JOB.format(namespace=e2e.namespace, **about))
    words = ["submit", file, "--working-dir", folder, "-n", e2e.namespace, "--kubeconfig", e2e.cluster.kubeconfig]
    command = [sys.executable, "-m", "spotladder.cli.main", *map(str, words)]
    done = subprocess.run(
        command, env={**os.environ, **e2e.bucket.environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_workers_of_ray_import_the_files_of_every_attempt(e2e: E2eCluster, tmp_path: Path) -> None:
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 2)
    folder = tmp_path / "files"
    folder.mkdir()
    files = {"train.py": SCRIPT, "helper.py": HELPER, "words.py": "EDITION = 'first'\n"}
    for name, text in {**files, "chain.py": (PROGRAMS / "chain.py").read_text()}.items():
        (folder / name).write_text(text)
    submit(e2e, folder)
    e2e.runs("spot")
    (folder / "words.py").write_text("EDITION = 'second'\n")  # after the submission: of no attempt
    e2e.cluster.kill(e2e.worker_node())
    e2e.succeeds()
    assert e2e.last_on_each_tier() == [("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    e2e.is_the_uninterrupted_result()
    e2e.until("the output of its last attempt is kept", lambda: e2e.printed(len(e2e.path())))
    assert "this is the first edition" in "".join(e2e.printed(len(e2e.path())).values())
