"""A program that knows nothing of spotladder: it saves a checkpoint after each step in `out`.

    own_checkpoints.py [--resume PATH] [--total N] [--hold N] [--save-at-sigterm | --ignore-sigterm] [--trainer]

`--hold N`: after step N it waits until it is ended. `--trainer`: its checkpoints are those of Hugging Face's Trainer,
which tell the last step, and at SIGTERM it ends well. It prints the step after which it begins.
"""

import argparse
import json
import signal
import sys
import time
import zipfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--resume", type=Path)
parser.add_argument("--total", type=int, default=30)
parser.add_argument("--hold", type=int, default=0)
parser.add_argument("--save-at-sigterm", action="store_true")
parser.add_argument("--ignore-sigterm", action="store_true")
parser.add_argument("--trainer", action="store_true")
given = parser.parse_args()
out = Path("out")


def save(step: int) -> None:
    history = list(range(1, step + 1))
    if given.trainer:
        folder = out / f"checkpoint-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "history.json").write_text(json.dumps(history))
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": given.total}))
        return
    out.mkdir(exist_ok=True)
    draft = out / f".step-{step}"
    with zipfile.ZipFile(draft, "w") as archive:
        archive.writestr("history.json", json.dumps(history))
    draft.rename(out / f"step-{step}.pt")


def load(path: Path) -> int:
    if given.trainer:
        return len(json.loads((path / "history.json").read_text()))
    with zipfile.ZipFile(path) as archive:
        return len(json.loads(archive.read("history.json")))


def stop(number: int, frame: object) -> None:
    if given.save_at_sigterm:
        save(step + 1)
    if not given.ignore_sigterm:
        sys.exit(0 if given.trainer else 1)


step = load(given.resume) if given.resume else 0
print(f"begins after step {step}", flush=True)
if given.save_at_sigterm or given.ignore_sigterm or given.trainer:
    signal.signal(signal.SIGTERM, stop)
while step < given.total:
    save(step + 1)
    step += 1
    while step == given.hold:
        time.sleep(0.01)
while given.trainer and given.hold == 0:
    time.sleep(0.01)  # It evaluates until it is asked to stop.
