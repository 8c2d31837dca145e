"""Five kinds of jobs of a hostile namespace: one prints, one has a bucket that lists without end, one asks for more,
one has a broken commit log, and one floods the channel between the ranks of an honest job."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from spotladder.checkpoints.entries import LARGEST_ENTRY
from spotladder.checkpoints.entry_keys import key_of
from spotladder.errors import SpotladderError
from spotladder.train import rendezvous
from tests.adversarial.test_printed_text import PIECES
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT
from tests.e2e.world import E2eCluster
from tests.ways import LEVEL, WAYS, spec

TRAINS = ("python", "/programs/plain.py", "--steps", "1000000", "--pace", "1")
"""A program with more steps than a soak has time for."""

PRINTS = f"for piece in {PIECES!r}: print((piece * 262144)[:262144])\nraise SystemExit(1)"
"""A program that prints 256 KiB of the beginning of everything that is searched for, and fails."""

FLOODS = """
import socket, sys
opened = [socket.create_connection((sys.argv[1], int(sys.argv[2])), 2) for _ in range(200)]
for connection in opened:
    try: connection.sendall(bytes([16, 0, 0, 0]))
    except OSError: pass
"""
"""A program that opens 200 connections to rank 0 and announces a frame of 256 MiB on each. Rank 0 may end them; the
program fails if it cannot open them."""

BROKEN = (b"[" * 100_000, b"{}", b" " * (LARGEST_ENTRY + 1), b"\xff", b'{"v":1,"kind":"commit","seq":1e999}')
"""The first entry of a log, one after the other."""


class Endless(BaseHTTPRequestHandler):
    """A bucket of S3 whose listings have one more page after each, `pause` seconds later. `taken` has the prefix of
    each page that was taken."""

    pause = 1.0
    taken: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        keys = (f"{prefix}{time.time_ns() + number:020d}.json" for number in range(1000))
        rest = "<Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        page = "<IsTruncated>true</IsTruncated><NextContinuationToken>on</NextContinuationToken>"
        page += "".join(f"<Contents><Key>{key}</Key>{rest}" for key in keys)
        time.sleep(self.pause)
        with suppress(OSError):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"<ListBucketResult>{page}</ListBucketResult>".encode())
            self.taken.append(prefix)

    def log_message(self, *_: object) -> None:
        return None


@contextmanager
def endless_bucket(host: str) -> Iterator[str]:
    """The endpoint of that bucket, inside the block."""
    with ThreadingHTTPServer((host, 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{host}:{server.server_port}"
        server.shutdown()


def light_job(e2e: E2eCluster, *command: str, ranks: int = 1) -> Object:
    """A JobSet of small pods, many of which fit on a machine."""
    pod = e2e.pod("128Mi", command=list(command), resources={"requests": {"cpu": "50m", "memory": "128Mi"}})
    job = {"parallelism": ranks, "completions": ranks, "template": {"spec": pod}}
    workers = {"name": "workers", "replicas": 1, "template": {"spec": job}}
    return {"jobSet": {"template": {"spec": {"replicatedJobs": [workers]}}}}


class Attackers:
    """The jobs in `e2e`. `victim` is an honest job of two ranks in `honest`. `got` are the RayJobs that were created of
    templates that ask for more, and `acted` is how often each of the attacks in `act` has reached its aim."""

    def __init__(self, e2e: E2eCluster, endpoint: str, honest: E2eCluster, victim: str) -> None:
        self._e2e, self._honest, self._victim, self._endpoint = e2e, honest, victim, endpoint
        self._asks = enumerate(itertools.cycle(way for way in WAYS if way.said == LEVEL))
        self._broken = itertools.cycle(BROKEN)
        self._attacks = {"asks": self._ask, "breaks": self._break, "floods": self._flood}
        self.got: set[str] = set()
        self.acted = Counter(dict.fromkeys(self._attacks, 0))

    def begin(self) -> None:
        """Submit the jobs."""
        secret = {**self._e2e.bucket.environment, "AWS_ENDPOINT_URL": self._endpoint}
        metadata = {"name": "endless", "namespace": self._e2e.namespace}
        self._e2e.kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": secret})
        own = {"lists": {**self._e2e.checkpoints, "credentials": {"secretName": "endless"}}}
        for name in ("prints", "lists", "breaks", "floods"):
            workload = light_job(self._e2e, *(("python", "-c", PRINTS) if name == "prints" else TRAINS))
            log = own.get(name, self._e2e.checkpoints)
            self._e2e.submit({"name": SPOT, "maxFailures": -1}, name=name, workload=workload, checkpoints=log)

    def act(self) -> None:
        """Everything that the jobs cannot do themselves. An attack fails during an outage, and before its pods run."""
        for kind, attack in self._attacks.items():
            with suppress(AssertionError, SpotladderError, IndexError, KeyError, ValueError):
                self.acted[kind] += attack()

    def attacks(self) -> dict[str, int]:
        """How often each kind has acted: failed programs, pages that were taken, and those in `act`."""
        return {"prints": len(self._e2e.path("prints")), "lists": len(Endless.taken), **self.acted}

    def _ask(self) -> bool:
        """Returns whether the API server refuses this job, or the controller has refused the one before."""
        self.got |= {created["metadata"]["name"] for created in self._e2e.kube.list("rayjobs")}
        number, way = next(self._asks)
        refused = LEVEL in json.dumps(self._e2e.status(f"asks-{number - 1}"))
        self._e2e.kube.delete("tieredjob", f"asks-{number - 1}", "--wait=false")
        base = {**spec(), "tiers": [self._e2e.tier(SPOT)], "checkpoints": self._e2e.checkpoints}
        metadata = {"name": f"asks-{number}", "namespace": self._e2e.namespace}
        body = {"apiVersion": "spotladder.io/v1alpha1", "kind": "TieredJob", "metadata": metadata}
        try:
            self._e2e.kube.apply({**body, "spec": way.spec(base)})
        except AssertionError as error:
            return refused or LEVEL in str(error)
        return refused

    def _break(self) -> bool:
        store = self._e2e.bucket.log(self._e2e.namespace, "breaks").store
        store.delete([key_of(0)])
        return store.put_if_absent(key_of(0), next(self._broken))

    def _flood(self) -> bool:
        store = self._honest.bucket.log(self._honest.namespace, self._victim).store
        newest = max(meta.key for meta in store.list(rendezvous._folder(self._honest.status(self._victim)["attempt"])))
        address, pod = json.loads(store.get(newest)), self._e2e.pods(name="floods")[0]["metadata"]["name"]
        command = ["python", "-c", FLOODS, address["hosts"][0], str(address["port"])]
        self._e2e.kube.run("exec", pod, "-c", "program", "--", *command)
        return True
