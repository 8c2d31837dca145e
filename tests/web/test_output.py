"""The output of a program that runs, as the page reads it from a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

from spotladder.checkpoints.outputs import CUT
from spotladder.places import cluster


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_only_the_end_of_a_long_output_is_kept_from_the_beginning_of_a_line() -> None:
    line = b"x" * 99 + b"\n"
    text = await cluster._end(pieces(*[line * 100] * 100, b"the last line\n"))
    assert len(text) <= cluster.LONGEST + len(CUT)
    assert text.startswith(f"{CUT}xxx")
    assert text.endswith("x\nthe last line\n")
    assert await cluster._end(pieces(b"a character of two bytes: \xc3", b"\xa4")) == "a character of two bytes: ä"
