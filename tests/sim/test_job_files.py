"""`sim run` and `plan` refuse files from which no estimate follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import Answer, call

Capture = pytest.CaptureFixture[str]
UNPRICED = changed(WORLD, ('    price: {perNodeHour: "0.42", onDemandPerNodeHour: 1.41}\n', ""))
COMMANDS = ("plan", "sim run")


def asked(
    capsys: Capture, folder: Path, command: str, *, job: str = JOB, world: str = WORLD, trace: str = ""
) -> Answer:
    files = written(folder, "job.yaml", job), written(folder, "world.yaml", world)
    given = ("--trace", f"spot-a={written(folder, 'zone.csv', trace)}") if trace else ()
    runs = ("--runs", "2") if command == "plan" else ("--seeds", "1")  # The trace from its start.
    options = ("--world", files[1], "--hours", "5", "--evictions-per-node-hour", "0.5")
    return call(capsys, *command.split(), files[0], *options, *runs, *given)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pool_without_a_price_is_refused(capsys: Capture, tmp_path: Path, command: str) -> None:
    """Its nodes would cost nothing in the estimate."""
    answer = asked(capsys, tmp_path, command, world=UNPRICED)
    said = "world.yaml: pools.g5-spot-use1a: has no price (expected price.perNodeHour, in USD): add it\n"
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith(said)


def test_a_pool_beside_one_with_a_trace_is_unavailable_too(capsys: Capture, tmp_path: Path) -> None:
    """There is no spot capacity after the first hour, and no on-demand capacity in the first three."""
    world = changed(
        WORLD,
        ("    price: {perNodeHour: 1.41}\n", "    price: {perNodeHour: 1.41}\n    unavailable: [{from: 0s, to: 3h}]\n"),
    )
    trace = "time,available\n" + "".join(f"{600 * tick},{int(not 6 <= tick < 120)}\n" for tick in range(400))
    job = changed(JOB, ("    provisionTimeout: 30m\n", "    provisionTimeout: 4h\n"))
    answer = asked(capsys, tmp_path, "sim run", job=job, world=world, trace=trace)
    assert (answer.code, answer.err) == (0, "")
    (row,) = [line.split() for line in answer.out.splitlines() if line.startswith("ordered")]
    (hours,) = [int(word.removesuffix("h")) for word in row if word[0].isdigit() and word.endswith("h")]
    assert hours >= 3 + 5 - 1
