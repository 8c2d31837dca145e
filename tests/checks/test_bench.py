"""The command line of the benchmarks."""

from pathlib import Path

import pytest

from tests.bench import __main__ as bench


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["storm"], ["scale", "storm"], ["losses", "moves", "--passes", "2"], ["--only", "power cut"]],
)
def test_without_a_known_benchmark_nothing_is_written(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "PAGE", tmp_path)  # a folder: writing the page would fail
    with pytest.raises(SystemExit) as ended:
        bench.main(arguments)
    shown = capsys.readouterr()
    if arguments == ["--help"]:
        assert ended.value.code == 0
        assert "rollout" in shown.out
    else:
        assert ended.value.code == 2
        expected = (
            "no benchmark is called storm (expected calibration, gangs,"
            if "storm" in arguments
            else "--only and --passes need exactly one benchmark"
        )
        assert expected in shown.err
