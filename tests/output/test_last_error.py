from __future__ import annotations

import subprocess
import sys

import pytest

from spotladder.output.last_error import STALE_AFTER, last_error, last_lines, plain

SIMPLE = """\
epoch 1
Traceback (most recent call last):
  File "/app/train.py", line 31, in <module>
    main()
    ~~~~^^
  File "/app/data.py", line 7, in main
    raise ValueError("no data")
ValueError: no data
"""

CHAINED = """\
Traceback (most recent call last):
  File "a.py", line 1, in f
    1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in g
    raise KeyError("rate")
KeyError: 'rate'
"""

RAY = """\
2026-01-01 10:00:00,000\tERROR controller.py:1 -- boom
Traceback (most recent call last):
  File "/app/train.py", line 60, in <module>
    trainer.fit()
  File "/opt/venv/lib/python3.11/site-packages/ray/train/v2/api/data_parallel_trainer.py", line 1, in fit
    raise result.error
ray.train.v2.api.exceptions.WorkerGroupError: Training failed due to worker errors:
[Rank 0 Error Snippet]:
Traceback (most recent call last):
  File "/app/train.py", line 22, in loop
    raise RuntimeError("loss is nan")
RuntimeError: loss is nan
"""

WORKERS = """\
(RayTrainWorker pid=11, ip=10.0.0.1) Traceback (most recent call last):
(RayTrainWorker pid=12, ip=10.0.0.2) step 3
(RayTrainWorker pid=11, ip=10.0.0.1)   File "x.py", line 5, in loop
(RayTrainWorker pid=12, ip=10.0.0.2) step 4
(RayTrainWorker pid=11, ip=10.0.0.1)     raise OSError("disk")
(RayTrainWorker pid=11, ip=10.0.0.1) OSError: disk [repeated 2x across cluster] (Ray deduplicates logs by default.)
"""

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "g.py", line 3, in <module>
  |     raise ExceptionGroup("two", [ValueError("one")])
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: one
    +------------------------------------
"""

SYNTAX = """\
  File "/app/t.py", line 4
    if x
        ^
SyntaxError: expected ':'
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "", id="nothing printed"),
        pytest.param("\n \n", "", id="blank lines"),
        pytest.param("step 1\nno such file: x\n\n", "no such file: x", id="no traceback: the last line"),
        pytest.param(SIMPLE, "ValueError: no data (data.py:7)", id="a traceback"),
        pytest.param(SIMPLE + "bye\n", "ValueError: no data (data.py:7)", id="a traceback and one more line"),
        pytest.param(CHAINED, "KeyError: 'rate' (b.py:2)", id="a chain: the exception that was not caught"),
        pytest.param(RAY, "RuntimeError: loss is nan (train.py:22)", id="Ray quotes the traceback of the rank"),
        pytest.param(WORKERS, "OSError: disk (x.py:5)", id="interleaved lines of two workers"),
        pytest.param(GROUP, "ExceptionGroup: two (1 sub-exception) (g.py:3)", id="a group"),
        pytest.param(SYNTAX, "SyntaxError: expected ':' (t.py:4)", id="no header"),
        pytest.param(
            SIMPLE + "went on\n" * (STALE_AFTER + 1) + "not enough data\n", "not enough data", id="caught and logged"
        ),
        pytest.param(SIMPLE.partition("ValueError: no")[0], "raise ValueError(\"no data\")", id="cut off"),
        pytest.param("\x1b[31mred\x1b[0m \x1b]0;title\x07end\n", "red end", id="terminal codes"),
        pytest.param(" 10%\r 50%\r100% done\n", "100% done", id="a progress bar"),
        pytest.param(
            "step 9\nspotladder: s3://b: access denied (exit code 77)\n", "s3://b: access denied", id="train.ending"
        ),
        pytest.param("password=hunter2hunter2\n", "password=[redacted]", id="secrets"),
    ],
)  # fmt: skip
def test_the_last_error_of_an_output_is_found(text: str, expected: str) -> None:
    assert last_error(text) == expected


def test_the_error_is_one_short_line() -> None:
    error = last_error(f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: {"x" * 5000}\n')
    assert len(error) <= 300
    assert error.startswith("ValueError: xxx")
    assert error.endswith("… (a.py:1)")


def test_the_last_lines_are_the_traceback() -> None:
    assert last_lines(SIMPLE)[0] == "Traceback (most recent call last):"
    assert last_lines(SIMPLE)[-1] == "ValueError: no data"
    assert len(last_lines(SIMPLE)) == 7
    assert last_lines("a\n\nb\nc\n", 2) == ("b", "c")
    assert last_lines("") == ()


def test_a_long_traceback_keeps_its_last_frames() -> None:
    frames = "".join(f'  File "deep.py", line {n}, in f\n    f()\n' for n in range(100))
    kept = last_lines(f"Traceback (most recent call last):\n{frames}RecursionError: too deep\n", 10)
    assert len(kept) == 10
    assert kept[:2] == ("Traceback (most recent call last):", "  …")
    assert kept[-2:] == ("    f()", "RecursionError: too deep")


def test_the_last_error_of_a_real_python_process_is_found() -> None:
    code = "def f():\n  raise RuntimeError('boom')\ntry:\n  1/0\nexcept ZeroDivisionError:\n  f()"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert last_error(printed) == "RuntimeError: boom (<string>:2)"


def test_windows_line_ends() -> None:
    assert plain("a\r\nb\r\n") == "a\nb\n"
