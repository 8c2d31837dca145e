"""Real experiment trackers: all attempts of a job are one run, and a repeated step is no second curve."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from spotladder.checkpoints.removal import remove
from tests.absent import absent
from tests.ports import free_port
from tests.train.builders import log_of, variables
from tests.waiting import until

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]

SCRIPT = """
import json
import os

import mlflow
import wandb
from tensorboardX import SummaryWriter

from spotladder import train

job, value, start = train.current(), 0.0, 0
with job.resume() as found:
    if found:
        value, start = json.loads((found.path / "value.json").read_text()), found.step
train.tracking.wandb()
train.tracking.mlflow(start)
board = SummaryWriter("logs", purge_step=start + 1)
with mlflow.start_run(), wandb.init(project="lines", mode="offline") as run:
    mlflow.log_text("40 steps", "about.txt")
    for step in job.steps(start, 40):
        value += 1.0
        mlflow.log_metric("value", value, step=step)
        run.log({"value": value}, step=step)
        board.add_scalar("value", value, step)
        if job.should_commit(step):
            with job.commit(step) as folder:
                (folder / "value.json").write_text(json.dumps(value))
        if job.attempt == 1 and step == 25:
            job.flush()
            board.flush()
            os._exit(9)  # as if the machine were lost
board.close()
"""


AIM = """
import json
import os

import aim

from spotladder import train

job, value, start = train.current(), 0.0, 0
with job.resume() as found:
    if found:
        value, start = json.loads((found.path / "value.json").read_text()), found.step
run = aim.Run(run_hash=train.tracking.aim(), force_resume=True, system_tracking_interval=None)
for step in job.steps(start, 40):
    value += 1.0
    run.track(value, name="value", step=step)
    if job.should_commit(step):
        with job.commit(step) as folder:
            (folder / "value.json").write_text(json.dumps(value))
    if job.attempt == 1 and step == 25:
        job.flush()
        os._exit(9)  # as if the machine were lost
run.close()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of MLflow's own server."""
    if importlib.util.find_spec("mlflow") is None:
        absent("make test-tracking installs MLflow", "tracking")
    folder = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    address = f"127.0.0.1:{port}"
    command = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    store = ["--backend-store-uri", f"sqlite:///{folder}/runs.db", "--artifacts-destination", str(folder / "artifacts")]
    process = subprocess.Popen([sys.executable, *command, *store], cwd=folder, process_group=0)

    def answers() -> bool:
        assert process.poll() is None, "MLflow's server has ended"
        try:
            with urlopen(f"http://{address}/health", timeout=5):
                return True
        except (URLError, OSError):
            return False

    try:
        until(answers)
        yield f"http://{address}"
    finally:
        os.killpg(process.pid, 15)
        process.wait()


def attempt(folder: Path, server: str, number: int) -> int:
    given = variables(folder / "bucket", attempt=number, tier="spot")
    more = {"MLFLOW_TRACKING_URI": server, "MLFLOW_EXPERIMENT_NAME": "lines", "WANDB_DIR": str(folder)}
    command = [sys.executable, str(folder / "train.py")]
    return subprocess.run(command, cwd=folder, env={**os.environ, **given, **more}, check=False).returncode


def test_all_attempts_are_one_run(tmp_path: Path, server: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert attempt(tmp_path, server, 1) == 9
    assert attempt(tmp_path, server, 2) == 0

    import mlflow

    mlflow.set_tracking_uri(server)
    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    assert run.info.status == "FINISHED"
    assert run.data.tags["spotladder.io/attempt-2"] == "from step 20 on spot"
    assert [file.path for file in mlflow.MlflowClient().list_artifacts(run.info.run_id)] == ["about.txt"]
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "value")
    assert {metric.step: metric.value for metric in history} == {step: float(step) for step in range(1, 41)}

    folders = sorted(path.name for path in (tmp_path / "wandb").glob("offline-run-*"))
    assert len(folders) == 2
    assert len({name.rsplit("-", 1)[1] for name in folders}) == 1

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(tmp_path / "logs"))
    board.Reload()
    assert [event.step for event in board.Scalars("value")] == list(range(1, 41))


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Aim has no wheels for this Python")
def test_all_attempts_are_one_run_of_aim(tmp_path: Path) -> None:
    if importlib.util.find_spec("aim") is None:
        absent("make test-tracking installs Aim", "tracking")
    (tmp_path / "train.py").write_text(AIM)
    assert attempt(tmp_path, "", 1) == 9
    assert attempt(tmp_path, "", 2) == 0

    from aim import Repo, Run

    repo = Repo.from_path(str(tmp_path))
    (only,) = repo.list_all_runs()
    (metric,) = Run(run_hash=only, repo=repo, system_tracking_interval=None).metrics()
    steps, (values, *_) = metric.data.items_list()
    assert dict(zip(steps, values, strict=True)) == {step: float(step) for step in range(1, 41)}


def test_a_job_whose_checkpoints_are_removed_begins_a_new_run(tmp_path: Path, server: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert attempt(tmp_path, server, 2) == 0
    remove(log_of(tmp_path / "bucket"))
    assert attempt(tmp_path, server, 2) == 0
    assert len({path.name.rsplit("-", 1)[1] for path in (tmp_path / "wandb").glob("offline-run-*")}) == 2
