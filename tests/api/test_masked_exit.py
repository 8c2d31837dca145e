"""Entrypoints that hide the exit code of the program."""

from __future__ import annotations

import time
from typing import Any

import pytest

from spotladder.api.document import documents_of
from spotladder.api.entrypoints import shell_script
from spotladder.api.masked_exit import masked_exits, masks
from spotladder.api.tieredjob import TieredJob
from tests.api.builders import JOB


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("python train.py 2>&1 | tee train.log", "pipefail"),
        ("python train.py |& tee train.log", "pipefail"),
        ("cd /app && torchrun train.py | grep loss", "pipefail"),
        ("./train | tee log", "pipefail"),
        ("python train.py | tee log && echo done", "pipefail"),
        ("bash -c 'python train.py | tee log'", "pipefail"),
        ("/bin/bash -lc 'python train.py | tee log'", "pipefail"),
        ("python train.py || true", r"|| true hides"),
        ("python train.py || :", "|| : hides"),
        ("python train.py &", "background"),
        ("python serve.py & python train.py & wait", "background"),
        ("python train.py; echo done", "(echo)"),
        ("python train.py\necho done\n", "(echo)"),
        ("python train.py || echo failed", "|| echo hides"),
        ("python train.py || exit 0", "|| exit 0 hides"),
        ("python train.py; exit 0", "(exit 0)"),
        ("python train.py; aws s3 sync /out s3://b", "(aws)"),
        ("{ python train.py | tee log; }", "pipefail"),
        ("exec env A=1 bash -c 'python train.py | tee log'", "pipefail"),
        ("torchrun --gpus $(nvidia-smi -L | wc -l) train.py | tee log", "pipefail"),
        ("nohup python train.py > log &\nsleep infinity", "background"),
        ("nohup python train.py > log & tail -f log", "background"),
        ("python train.py; pkill istio-proxy", "(pkill)"),
        ("until python train.py; do sleep 5; done", "until around the program"),
        ("while true; do python train.py; sleep 5; done", "while around the program"),
        ("while ! torchrun train.py; do sleep 1; done", "while around the program"),
        ("pip install -r r.txt; python train.py; cp log /out", "(cp)"),
        ("# the program's log\nbash -c 'python train.py | tee log'", "pipefail"),
    ],
)
def test_a_hidden_exit_code_is_found(script: str, says: str) -> None:
    assert says in masks(script)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "python train.py",
        "python train.py > train.log 2>&1",
        "python train.py &> train.log",
        "python train.py >| train.log",
        "bash -c 'set -o pipefail; python train.py | tee log'",
        "bash -o pipefail -c 'python train.py | tee log'",
        "bash -eo pipefail -c 'python train.py | tee log'",
        "set -euo pipefail\npython train.py | tee log",
        "set -e; python train.py; echo done",
        "pip install x; python train.py",
        "pip install x && python train.py;",
        "yes | python train.py",
        "curl https://example.org/x | tar x && python train.py",
        "cd /app; export A=1; python train.py",
        "python train.py --pattern 'a|b; c &' --x \"y || true\"",
        "python -c 'import a; a.run()  # | tee'",
        "python train.py # | tee log",
        "python train.py || exit 1",
        "python train.py || exit $?\necho done",
        "python train.py || { echo failed; exit 1; }; cp log /out",
        "python prepare.py | python train.py",
        "python train.py \\\n  --epochs 3",
        "cat <<EOF > x\na | b\nEOF\npython train.py",
        "cat <<EOF > x\na | b\npython train.py | tee log",
        "python - <<'EOF'\nimport a; a.run('x | y || true')\nEOF\n",
        "python train.py <<< 'x | y'",
        "python train.py | tee log; exit ${PIPESTATUS[0]}",
        "python train.py; exit $?",
        "python train.py 'never closed",
        "echo start; date",
        'torchrun --master_addr $(echo "$HOSTS" | head -n1) train.py',
        "torchrun --master_addr `head -n1 hosts | cut -f1` train.py",
        "N=$(nvidia-smi -L | wc -l || true) python train.py --shard $((2 * (RANK & 1)))",
        "tensorboard --logdir log & python train.py",
        "python prefetch.py &\npython train.py",
        "while ! python probe.py; do sleep 1; done; python train.py",
        "if python train.py; then touch done; else exit 1; fi",
        "if [ -f x ]; then python prepare.py; fi; python train.py",
        "if [ -f x ]; then python train.py --resume; else python train.py; fi",
        "for seed in 1 2; do python train.py $seed || exit 1; done",
    ],
)
def test_other_entrypoints_are_left_alone(script: str) -> None:
    assert masks(script) == ""


def test_a_long_run_of_digits_is_read_quickly() -> None:
    started = time.process_time()
    assert masks("1" * 65_000) == ""
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["sh", "-c", "python x | tee y"], "python x | tee y"),
        (["/bin/bash", "-euxc", "python x; echo y"], "set -e\npython x; echo y"),
        (["bash", "-o", "pipefail", "-c", "x | y"], "set -o pipefail\nx | y"),
        (["tini", "--", "env", "A=1", "sh", "-c", "x | y"], "x | y"),
        (["python", "-c", "x | y"], ""),
        (["bash", "run.sh"], ""),
        (["bash"], ""),
        ([], ""),
        ([1], ""),
    ],
)
def test_the_script_of_a_container_is_that_of_its_shell(words: list[Any], script: str) -> None:
    assert shell_script(words) == script


def test_the_containers_of_a_jobset_are_read_too() -> None:
    container = {"name": "train", "image": "train", "command": ["bash", "-c"], "args": ["python train.py | tee log"]}
    job = {
        "name": "workers",
        "replicas": 1,
        "template": {"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "x"}, container]}}}},
    }
    (document,) = documents_of(JOB, "job.yaml")
    workload = {"jobSet": {"template": {"spec": {"replicatedJobs": [job]}}}}
    data = {**document.data, "spec": {**document.data["spec"], "workload": workload}}
    found = list(masked_exits(TieredJob.model_validate(data)))
    assert [path[-2:] for path, _ in found] == [("containers", 1)]
