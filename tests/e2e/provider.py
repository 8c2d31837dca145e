"""Real clusters whose nodes can be lost: the port to a provider of clusters.

The provider is the `cluster` command, found through SPOTLADDER_CLUSTER_TOOL. Another provider (kind, a cloud) needs
only these methods.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kube.apiserver import tools

VARIABLE = "SPOTLADDER_CLUSTER_TOOL"
_DEFAULT = Path(__file__).parents[3] / "shared" / "cluster" / "cluster"
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_INOTIFY_INSTANCES = 1024


def tool() -> Path:
    """The command that creates clusters; it may not exist."""
    return Path(os.environ.get(VARIABLE) or _DEFAULT)


def clusters() -> Path:
    """The folder with the state of the clusters that exist."""
    return Path(os.environ.get("SPOTLADDER_CLUSTERS", "/tmp/spotladder-clusters"))  # noqa: S108 – the tool's own


def remove_image(tar: Path) -> None:
    """Remove an image, and what nodes were given of it, unless a cluster uses it: each new node needs it again."""
    if any(str(tar) in record.read_text() for record in clusters().glob("*/cluster.json")):
        return
    tar.unlink()
    for unpacked in (tar.parent / "stores").glob("*.json"):
        if str(tar) in unpacked.read_text():
            shutil.rmtree(unpacked.with_suffix(""), ignore_errors=True)
            unpacked.unlink()


def missing() -> str:
    """Why no cluster can be created here; "" if one can."""
    if not tool().exists():
        return f"no cluster provider: set {VARIABLE}"
    if os.geteuid() != 0:
        return "making nodes needs root"
    absent = [
        name for name in ("kube-apiserver", "kubelet", "kubectl", "helm", "kuberay") if not program(name).exists()
    ]
    return f"not installed: {', '.join(absent)} (`cluster install`)" if absent else ""


def raise_inotify_limit() -> None:
    """Let many kubelets and Rays start. Each uses several inotify instances, and with the kernel's default of 128 for
    each user, the nodes of two clusters do not become Ready. A read-only /proc keeps its value."""
    with suppress(OSError):
        if int(_INOTIFY.read_text()) < _INOTIFY_INSTANCES:
            _INOTIFY.write_text(f"{_INOTIFY_INSTANCES}\n")


def program(name: str) -> Path:
    """One of the provider's programs: kubectl, helm, …"""
    return tools() / "bin" / name


class ProvidedCluster:
    """One cluster. `host` is this machine's address as its pods see it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kubeconfig = clusters() / name / "kubeconfig"

    def up(self, image: str, nodes: Mapping[str, str], *options: str) -> None:
        """Start it with these nodes, each with its labels (`pool=spot,zone=a`)."""
        asked = [f"--node={node}{':' + labels if labels else ''}" for node, labels in nodes.items()]
        raise_inotify_limit()
        self._call("up", self.name, f"--image={image}", *asked, *options)

    def addons(self, *names: str) -> None:
        """Start these operators in the cluster: kuberay, jobset, karpenter."""
        self._call("addons", self.name, *names)

    def down(self) -> None:
        """Remove the cluster and all of its resources."""
        self._call("down", self.name)

    @property
    def host(self) -> str:
        """This machine's address in the cluster's network."""
        found = re.search(r"host (\d+\.\d+\.\d+\.\d+)", self._call("status", self.name))
        assert found, "the cluster has no host address"
        return found.group(1)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def add(self, pool: str, *names: str) -> None:
        """Add machines to a pool. Returns when they are Ready. A machine that does not start is replaced once: its
        kubelet has ended, because the container runtime was too slow for it."""
        if self._added(pool, names):
            return
        absent = [name for name in names if not self._ready(name)]
        if absent:
            print(*(self._call("logs", self.name, f"{name}/kubelet")[-500:] for name in absent), sep="\n")
            self.remove_quietly(absent)
            assert self._added(pool, absent), f"{', '.join(absent)}: not Ready, also as new machines"

    def _added(self, pool: str, names: Sequence[str]) -> bool:
        """False if some machines are not Ready in time; they may continue to start."""
        command = [str(tool()), "node", "add", self.name, *(f"{name}:pool={pool}" for name in names)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        late = "not there after" in done.stderr
        assert late or not done.returncode, f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}"
        return not done.returncode

    def _ready(self, name: str) -> bool:
        command = [str(program("kubectl")), f"--kubeconfig={self.kubeconfig}", "wait", f"node/{name}"]
        return all(
            subprocess.run([*command, f"--for={state}", "--timeout=60s"], capture_output=True, check=False).returncode
            == 0
            for state in ("create", "condition=Ready")
        )

    def kill(self, *names: str, silent: bool = False) -> None:
        """Kill the machines; their Node objects stay. `silent`: no further packet is sent, as in a power cut."""
        self._call("node", "kill", self.name, *names, *(["--silent"] if silent else []))

    def remove(self, *names: str) -> None:
        """Kill the machine and delete its Node object, as clouds do."""
        self._call("node", "remove", self.name, *names)

    def remove_quietly(self, names: Sequence[str]) -> None:
        """Do the same for machines that may be gone already."""
        for name in names:
            subprocess.run([str(tool()), "node", "remove", self.name, name], capture_output=True, check=False)

    def notice(self, name: str, grace: float) -> subprocess.Popen[str]:
        """Give the machine a notice and kill it after `grace` seconds, in the background."""
        command = [str(tool()), "node", "notice", self.name, name, "--grace", f"{grace:g}"]
        return subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def partition(self, *names: str) -> None:
        """Cut the network between the machines and the API server; the machines continue to run."""
        self._call("node", "partition", "--from-apiserver", self.name, *names)

    def isolate(self, *names: str) -> None:
        """Cut the machines off from every other machine; they continue to run."""
        self._call("node", "partition", self.name, *names)

    def heal(self, *names: str) -> None:
        """Undo a partition."""
        self._call("node", "heal", self.name, *names)

    @contextmanager
    def stopped(self, component: str) -> Iterator[None]:
        """A process of the control plane, or an operator (apiserver, kuberay, jobset), hangs: it accepts connections
        and answers none."""
        status = self._call("status", self.name)
        pid = next(int(line.split()[-1]) for line in status.splitlines() if line.split()[:1] == [component])
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def capacity(self, kind: str, *options: str) -> None:
        """Set how many `spot` or `on-demand` nodes Karpenter can buy."""
        self._call("capacity", self.name, kind, *options)

    def _call(self, *arguments: str) -> str:
        return call([str(tool()), *arguments])


def call(command: Sequence[str], *, given: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run the command and return its output. Fails with its error output."""
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
