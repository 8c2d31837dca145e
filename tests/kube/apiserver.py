"""A local API server: etcd and kube-apiserver on free ports of 127.0.0.1, which end with the tests."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ports import free_port

TOKEN = "of-the-tests"
ROOT = Path(__file__).parents[2]


def missing() -> str:
    """Why no API server can run on this machine; "" if it can."""
    wanted = [name for name in ("etcd", "kube-apiserver") if find(name) is None]
    return f"not found: {', '.join(wanted)} (KUBEBUILDER_ASSETS, SPOTLADDER_TOOLS or PATH)" if wanted else ""


def tools() -> Path:
    return Path(os.environ.get("SPOTLADDER_TOOLS", "~/.cache/spotladder-tools")).expanduser()


def find(name: str) -> str | None:
    """The program's path."""
    folders = [os.environ.get("KUBEBUILDER_ASSETS", ""), str(tools() / "bin"), os.environ.get("PATH", "")]
    return shutil.which(name, path=os.pathsep.join(filter(None, folders)))


class ApiServer:
    """Use as a context manager. `kubeconfig` is the administrator's."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spotladder-kube-"))
        self.kubeconfig = self.folder / "kubeconfig"
        self.port = free_port()
        self._etcd_port, self._peer_port = free_port(), free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ApiServer:
        try:
            self._write_keys()
            self.start_etcd()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        self._run(
            "etcd", "--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", "--log-level", "error",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        )  # fmt: skip

    def start(self) -> None:
        """Start or restart the API server, and wait until it is ready."""
        self._run(
            "kube-apiserver",
            "--etcd-servers", f"http://127.0.0.1:{self._etcd_port}",
            "--bind-address", "127.0.0.1", "--secure-port", str(self.port), "--cert-dir", str(self.folder / "certs"),
            "--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC",
            "--token-auth-file", str(self.folder / "tokens.csv"),
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", str(self.folder / "sa.key"),
            "--service-account-signing-key-file", str(self.folder / "sa.key"),
            # No controller creates service accounts or counts quotas here.
            "--disable-admission-plugins", "ServiceAccount",
            "--etcd-compaction-interval", "0",
        )  # fmt: skip
        self._wait("kube-apiserver", lambda: self._answers("/readyz"))

    def stop(self) -> None:
        """Kill the API server; etcd continues."""
        self._stop("kube-apiserver")

    def compact(self) -> None:
        """Compact all old revisions of etcd, so that a watch from one of them gets 410."""
        revision = self.etcd("range", {"key": "AA=="})["header"]["revision"]
        self.etcd("compaction", {"revision": revision, "physical": True})

    def etcd(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        """The response of etcd to a call of its key-value API as JSON; keys and values are in Base64."""
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv/{call}"
        request = urllib.request.Request(url, data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def processor_time(self) -> float:
        """CPU seconds of the API server, without etcd."""
        return processor_time(self._processes["kube-apiserver"].pid)

    def close(self) -> None:
        for name in ("kube-apiserver", "etcd"):
            self._stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubeconfig_of(self, user: str, token: str) -> Path:
        """Another user's kubeconfig; the token must be in tokens.csv."""
        path = self.folder / f"kubeconfig-{user}"
        path.write_text(self._config(token), encoding="utf-8")
        return path

    # --- processes --------------------------------------------------------------------------------------------------

    def _run(self, name: str, *arguments: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        program = find(name)
        assert program, missing()
        self._processes[name] = subprocess.Popen(
            [program, *arguments],
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509
        )
        log.close()

    def _stop(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()

    def _wait(self, name: str, ready: Callable[[], bool], limit: float = 300.0) -> None:
        end = time.monotonic() + limit
        while not ready():
            if self._processes[name].poll() is not None or time.monotonic() > end:
                tail = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{name} did not start:\n{tail}")
            time.sleep(0.1)

    def _answers(self, path: str) -> bool:
        import ssl

        context = ssl._create_unverified_context()
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {TOKEN}"})
        try:
            with urllib.request.urlopen(request, context=context, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _write_keys(self) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self.folder / "sa.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )
        lines = [
            f'{TOKEN},tests,tests,"system:masters"',
            "limited,limited,limited",
            "reader,reader,reader",
        ]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.kubeconfig.write_text(self._config(TOKEN), encoding="utf-8")

    def _config(self, token: str) -> str:
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "tests", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
                "users": [{"name": "tests", "user": {"token": token}}],
                "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
                "current-context": "tests",
            }
        )


def processor_time(pid: int) -> float:
    """CPU seconds of a process, on Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _die_with_parent() -> None:
    if sys.platform == "linux":
        # PR_SET_PDEATHSIG; on other systems the fixture's finally block kills it.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
