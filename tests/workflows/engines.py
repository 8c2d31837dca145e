"""Workflow engines that run the examples, each in a virtual environment of its own beside the one of the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.absent import absent
from tests.kube.apiserver import ROOT
from tests.kube.world import KubeWorld, eventually

PROGRAMS = {
    "airflow": """
import subprocess, sys
from airflow.sdk import DAG
from airflow_operator import Train
with DAG("training", schedule=None) as dag:
    Train(task_id="train", job=sys.argv[1])
if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    sys.exit(dag.test().state != "success")
""",
    "dagster": """
import dagster, sys
from dagster_asset import Training, model
config = dagster.RunConfig(ops={"model": Training(job=sys.argv[1])})
print(dagster.materialize([model], run_config=config).asset_materializations_for_node("model"))
""",
    "flyte": """
import sys
from flyte_task import training
print("paid:", training(job=sys.argv[1]))
""",
    "prefect": """
import sys
from prefect.testing.utilities import prefect_test_harness
from prefect_flow import train
with prefect_test_harness(server_startup_timeout=600):
    print("paid:", train(sys.argv[1]))
""",
}
"""The name of each engine, and the program of a user that runs its example."""

ON_KILL = "import asyncio, airflow_operator as user; asyncio.run(user.JobEnded('digits').on_kill())"
"""What Airflow's triggerer calls when a user marks the deferred task as failed."""


LIMIT = 600.0
"""Seconds for an engine to start on a busy machine."""


class Engine:
    """A running engine; `printed` is the file with its output. `cancel` cancels the task."""

    def __init__(self, process: subprocess.Popen[bytes], printed: Path, cancel: Callable[[], object]) -> None:
        self.process, self.printed, self.cancel = process, printed, cancel

    async def submits(self, kube: KubeWorld) -> str:
        """Wait until the job exists, and return its uid."""

        async def uid() -> str:
            if self.process.poll() is not None:
                raise RuntimeError(f"the engine has ended: {self.output()}")
            return await uid_of_job(kube)

        return str(await eventually(uid, LIMIT))

    def output(self) -> str:
        return self.printed.read_text(encoding="utf-8", errors="replace")


async def uid_of_job(kube: KubeWorld) -> str:
    return str((await kube.job())["metadata"]["uid"])


@contextmanager
def running(engine: str, job: Path, kube: KubeWorld, folder: Path) -> Iterator[Engine]:
    """The engine with the example that submits this file to the namespace."""
    python = Path(f"{sys.prefix}-{engine}", "bin", "python")
    if not python.exists():
        absent(f"not found: {python} (make test-workflows installs it)", "workflows")
    kubeconfig, homes = folder / "kubeconfig", ("AIRFLOW_HOME", "DAGSTER_HOME", "PREFECT_HOME", "HOME")
    config = json.loads(kube.server.kubeconfig.read_text(encoding="utf-8"))
    config["contexts"][0]["context"]["namespace"] = kube.namespace
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig), **dict.fromkeys(homes, str(folder))}
    env |= {"PYTHONPATH": str(ROOT / "examples" / "workflows"), "PYTHONUNBUFFERED": "1"}
    program, printed = folder / "dags" / "program.py", folder / "printed"
    env |= {"AIRFLOW__CORE__DAGS_FOLDER": str(program.parent), "AIRFLOW__CORE__LOAD_EXAMPLES": "false"}
    program.parent.mkdir(exist_ok=True)
    program.write_text(PROGRAMS[engine], encoding="utf-8")
    with printed.open("ab") as stream:
        command = [str(python), str(program), str(job)]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=stream, stderr=subprocess.STDOUT)

    def cancel() -> None:
        if engine == "airflow":
            subprocess.run([str(python), "-c", ON_KILL], cwd=folder, env=env, check=True)
        else:
            process.send_signal(signal.SIGTERM)

    try:
        yield Engine(process, printed, cancel)
    finally:
        # The temporary server of Prefect has a session of its own, and outlives an engine that is killed.
        for each in psutil.process_iter():
            with suppress(psutil.Error):
                if each.environ().get("HOME") == str(folder):
                    each.kill()
        process.wait()
