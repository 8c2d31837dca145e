"""The output of programs, shown while they run."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from spotladder.display.view import PlainView
from spotladder.local.output import CHUNK, LogReader, WithOutput
from spotladder.records.model import Noted


def test_a_log_is_read_incrementally_in_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    reader = LogReader(log)
    assert reader.lines() == []
    log.write_bytes(b"one\ntw")
    assert reader.lines() == ["one"]
    with log.open("ab") as file:
        file.write(b"o\r\nbad \xff byte\nrest")
    assert reader.lines() == ["two", "bad \ufffd byte"]
    assert (reader.rest(), reader.rest()) == (["rest"], [])


def test_an_incomplete_line_takes_little_memory(tmp_path: Path) -> None:
    """A progress bar writes its line again and again, and ends it after hours."""
    log = tmp_path / "driver.log"
    reader = LogReader(log)
    with log.open("ab", buffering=0) as file:
        for step in range(3):
            file.write(b"".join(b"\r%d: %6d%%" % (step, part) for part in range(CHUNK // 11)))
            assert reader.lines() == []
            assert len(reader._split._rest) < 100
        file.write(b"\r100%\r\n" + bytes(CHUNK))
        assert reader.lines() == ["100%"]
        assert LogReader(log).lines() == ["100%"], "no lines means the end of the log, for those who read all of it"
        file.write(bytes(CHUNK))
        assert sum(map(len, reader.lines())) > CHUNK
        assert len(reader._split._rest) <= CHUNK


def test_program_output_and_view_lines_are_interleaved_in_order(tmp_path: Path) -> None:
    def write(attempt: int, text: str) -> None:
        log = tmp_path / f"{attempt:04d}" / "driver.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("a") as file:
            file.write(text)

    write(1, "of an earlier run\n")
    console = Console(file=(tmp_path / "out").open("w"), width=80)
    with WithOutput(PlainView(console), console, tmp_path) as view:
        write(2, "step 1 [of 2]\nste")
        view.add(Noted(0.0, "something"))
        write(2, "p 2\nthe end")
    console.file.flush()
    assert (tmp_path / "out").read_text().splitlines() == [
        "[attempt 2] step 1 [of 2]",
        "0:00:00 ~ something",
        "[attempt 2] step 2",
        "[attempt 2] the end",
    ]
