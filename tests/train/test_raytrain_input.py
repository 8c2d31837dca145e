"""Ray Train V1 is an error of `ray_run_config`. Ray is not started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

V1_SWITCH = """
import os
os.environ["RAY_TRAIN_V2_ENABLED"] = "0"
from spotladder import train

train.ray_run_config()
"""
SWITCH_SAID = (
    "spotladder.errors.InvalidSpec: ray_run_config: Ray Train V1 is enabled by RAY_TRAIN_V2_ENABLED=0, but "
    "ray_run_config needs V2: set RAY_TRAIN_V2_ENABLED=1, before ray is imported"
)


def test_ray_train_v1_is_rejected(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", V1_SWITCH],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode in (1, 2)
    assert SWITCH_SAID in done.stderr.strip().splitlines()[-1]
