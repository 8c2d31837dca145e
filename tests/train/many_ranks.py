"""Many ranks of one attempt, simulated in one other process: each has a connection to the real channel of rank 0, and
answers like a rank that makes one commit."""

from __future__ import annotations

import asyncio
import json
import resource
import secrets
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spotladder.checkpoints.log import CommitLog
from spotladder.train.agreement import Agreement
from spotladder.train.commits import Commits
from spotladder.train.framing import CODE_SIZE, allow_connections, code_of, keys_of, proof_of
from spotladder.train.hub import Hub
from spotladder.train.pending import Checkpoint
from spotladder.train.ranks import ProcessRank
from tests.checkpoints.memory_store import MemoryStore

ROOT = Path(__file__).parents[2]
STEP = 6
FILE = b"weights"
CRC = f"{0x5FFAB3AE:08x}"


class ManyRanks:
    """Rank 0 of an attempt with `size` ranks; the others run in a process that `joined` starts."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.agreement = Agreement()
        self.hub = Hub(size, self.agreement, timeout=120.0)
        self.log = CommitLog(MemoryStore(), "digits")
        self.messages = 0
        self._writer = self.log.start(1)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Start the other ranks and wait until they have joined; at the end they leave."""
        command = [sys.executable, "-m", __name__, str(self.size), str(self.hub.address.port), self.hub.address.token]
        others = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            self.hub.complete()
            yield
            self.hub.close()
            said, _ = others.communicate(timeout=120)
            self.messages = int(said)
        finally:
            self.hub.close()
            others.kill()
            others.wait()

    def agree(self) -> None:
        """Agree on the step of the next commit."""
        self.hub.agree(STEP - 1, stop=False)

    def commit(self) -> None:
        """Commit the files of all ranks at the agreed step; rank 0 has none."""
        path = self._writer.folder(STEP)
        for rank in range(1, self.size):
            self.log.store.put_if_absent(f"{path}/{_name(rank)}", FILE)
        commits = Commits(
            self.log, self._writer, self.hub, ProcessRank(0, self.size, "test"), keep=3, fenced=lambda _: None
        )
        commits.submit(Checkpoint(STEP, None))
        assert commits.wait(600)


def _name(rank: int) -> str:
    return f"rank-{rank}/weights"


async def _rank(rank: int, size: int, port: int, token: str) -> int:
    """One rank until rank 0 leaves. Returns the number of messages sent and received after joining."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    key, sent, messages = b"", 0, 0

    async def receive() -> dict[str, Any]:
        (length,) = struct.unpack(">I", await reader.readexactly(4))
        if key:
            await reader.readexactly(CODE_SIZE)
        found: dict[str, Any] = json.loads(await reader.readexactly(length))
        return found

    def send(**frame: Any) -> None:
        nonlocal sent
        data = json.dumps(frame).encode()
        code = code_of(key, sent, data) if key else b""
        sent += bool(key)
        writer.write(struct.pack(">I", len(data)) + code + data)

    def give(topic: str, value: Any) -> int:
        send(say="give", topic=topic, value=value)
        return 1

    asked, challenge = (await receive())["challenge"], secrets.token_hex(16)
    send(rank=rank, size=size, group="", proof=proof_of(token, asked, f"rank {rank}"), challenge=challenge)
    assert not (await receive())["refusal"]
    key, _ = keys_of(token, asked, challenge, rank)
    while (frame := await receive())["say"] != "bye":
        messages += 1
        match frame:
            case {"say": "hold"}:
                send(say="held", asked=STEP - 1)
                messages += 1
            case {"say": "agreed", "step": step}:
                messages += give("folder 1.0", {"step": step, "skipped": False, "gave_up": ""})
            case {"say": "decided", "topic": "folder 1.0"}:
                file = {"name": _name(rank), "size": len(FILE), "crc": CRC}
                messages += give("commit 1.0", {"files": [file], "newer": False})
    writer.close()
    return messages


async def _all(size: int, port: int, token: str) -> int:
    return sum(await asyncio.gather(*(_rank(rank, size, port, token) for rank in range(1, size))))


if __name__ == "__main__":
    allow_connections(int(sys.argv[1]))
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > int(sys.argv[1])
    print(asyncio.run(_all(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
