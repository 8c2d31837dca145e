"""Holds a public example after the step at which it is to be killed. The example prints a line `step …` after each
step; `HELD_IN` names the folder with the number of the line that is the last one."""

import builtins
import os
import time
from pathlib import Path
from typing import Any

_print = print


def _hold(*words: Any, **more: Any) -> None:
    _print(*words, **more)
    if words and words[0] == "step":
        here = Path(os.environ["HELD_IN"])
        with (here / "steps").open("ab") as steps:
            steps.write(b".")
        if (here / "steps").stat().st_size >= int((here / "last").read_text()):
            (here / "held").touch()
            while True:
                time.sleep(1)


builtins.print = _hold
