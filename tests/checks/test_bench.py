"""The command line of the benchmarks."""

from pathlib import Path

import pytest

from tests.bench import __main__ as bench


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scale", "storm"], "no benchmark is called storm (expected calibration, gangs,"),
        (["losses", "moves", "--only", "power cut"], "--only needs exactly one benchmark"),
    ],
)
def test_without_a_known_benchmark_nothing_is_written(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "PAGE", tmp_path)  # a folder: writing the page would fail
    with pytest.raises(SystemExit):
        bench.main(arguments)
    assert said in capsys.readouterr().err
