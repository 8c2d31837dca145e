"""Commands of spotladder that pages show but that need a cluster or a bucket: they exist with these options."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spotladder.cli.main import group
from tests.docs.markdown import Block, blocks

TYPED = re.compile(r"^(?:\$ )?(?:kubectl )?spotladder ((?!COMMAND)[a-z].*)$", re.MULTILINE)


def shown() -> list[tuple[Block, str]]:
    """The commands in blocks of text, with the block of each."""
    return [(block, line) for block in blocks("text") for line in TYPED.findall(block.text)]


def options_of(words: list[str]) -> set[str]:
    """The options of the command that the words name. Raises KeyError if it does not exist."""
    root: Any = group()
    command = root.commands[words[0]].load()
    if hasattr(command, "commands"):
        command = command.commands[words[1]]
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}


@pytest.mark.parametrize(("block", "line"), shown(), ids=str)
def test_a_shown_command_and_its_options_exist(block: Block, line: str) -> None:
    # Without an explanation or a program behind it.
    words = re.split(r"\s{2,}|\s*#", line, maxsplit=1)[0].split(" -- ")[0].split()
    used = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert used <= options_of(words), f"{block}: {line}"
