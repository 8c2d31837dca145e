"""Real clusters with nodes that can be lost: the one port behind which a provider of clusters stands.

The provider is the `cluster` command, found through SPOTLADDER_CLUSTER_TOOL. Another one (kind, a cloud) needs no more
than these methods.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.kube.apiserver import tools

VARIABLE = "SPOTLADDER_CLUSTER_TOOL"
_DEFAULT = Path(__file__).parents[3] / "shared" / "cluster" / "cluster"


def tool() -> Path:
    """The command that makes clusters; whether it is there is another question."""
    return Path(os.environ.get(VARIABLE) or _DEFAULT)


def missing() -> str:
    """Why there can be no cluster here; "" when there can."""
    if not tool().exists():
        return f"no provider of clusters: set {VARIABLE}"
    if os.geteuid() != 0:
        return "making nodes needs root"
    absent = [
        name for name in ("kube-apiserver", "kubelet", "kubectl", "helm", "kuberay") if not program(name).exists()
    ]
    return f"not installed: {', '.join(absent)} (`cluster install`)" if absent else ""


def program(name: str) -> Path:
    """One of the provider's programs: kubectl, helm, …"""
    return tools() / "bin" / name


class Cluster:
    """One cluster. `host` is this machine's address as its pods see it."""

    def __init__(self, name: str) -> None:
        self.name = name
        folder = Path(os.environ.get("SPOTLADDER_CLUSTERS", "/tmp/spotladder-clusters"))  # noqa: S108 – the tool's own
        self.kubeconfig = folder / name / "kubeconfig"

    def up(self, image: str, nodes: Mapping[str, str], *options: str) -> None:
        """Start it with these nodes, each with its labels (`pool=spot,zone=a`)."""
        asked = [f"--node={node}{':' + labels if labels else ''}" for node, labels in nodes.items()]
        self._call("up", self.name, f"--image={image}", *asked, *options)

    def addons(self, *names: str) -> None:
        """Start operators beside it: kuberay, jobset, karpenter."""
        self._call("addons", self.name, *names)

    def down(self) -> None:
        """Remove it and everything of it."""
        self._call("down", self.name)

    @property
    def host(self) -> str:
        """This machine's address in the cluster's network."""
        found = re.search(r"host (\d+\.\d+\.\d+\.\d+)", self._call("status", self.name))
        assert found, "the cluster has no host address"
        return found.group(1)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def add(self, pool: str, *names: str) -> None:
        """New machines of a pool. They are Ready when this returns, however busy the machine is that they run on."""
        command = [str(tool()), "node", "add", self.name, *(f"{name}:pool={pool}" for name in names)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode and "not there after" in done.stderr:  # the nodes go on starting
            nodes = [f"node/{name}" for name in names]
            wait = ["wait", "--for=condition=Ready", "--timeout=300s", *nodes]
            call([str(program("kubectl")), f"--kubeconfig={self.kubeconfig}", *wait])
        else:
            assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}"

    def kill(self, name: str, *, silent: bool = False) -> None:
        """The machine is dead; its Node object stays. `silent`: not one packet more, as in a power cut."""
        self._call("node", "kill", self.name, name, *(["--silent"] if silent else []))

    def remove(self, *names: str) -> None:
        """The machine is dead and its Node object is deleted, as clouds do it."""
        self._call("node", "remove", self.name, *names)

    def remove_quietly(self, names: Sequence[str]) -> None:
        """The same, of machines of which some may be gone already."""
        for name in names:
            subprocess.run([str(tool()), "node", "remove", self.name, name], capture_output=True, check=False)

    def notice(self, name: str, grace: float) -> subprocess.Popen[str]:
        """The machine will go after `grace` seconds, and says so. Goes on beside the test."""
        command = [str(tool()), "node", "notice", self.name, name, "--grace", f"{grace:g}"]
        return subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def partition(self, *names: str) -> None:
        """The machines run on, but the API server and they do not reach each other."""
        self._call("node", "partition", "--from-apiserver", self.name, *names)

    def heal(self, *names: str) -> None:
        """Undo a partition."""
        self._call("node", "heal", self.name, *names)

    @contextmanager
    def losing_packets(self, *names: str, share: float) -> Iterator[None]:
        """Of what reaches these machines or their pods, this share is lost. The machines may be gone afterwards."""
        rules = [(chain, "-m", "statistic", "--mode", "random", "--probability", f"{share:g}", "-j", "DROP")
                 for chain in ("INPUT", "FORWARD")]  # fmt: skip
        done: list[tuple[str, tuple[str, ...]]] = []
        try:
            for name in names:
                for rule in rules:
                    self._call("exec", self.name, name, "iptables", "--insert", *rule)
                    done.append((name, rule))
            yield
        finally:
            for name, rule in done:
                command = [str(tool()), "exec", self.name, name, "iptables", "--delete", *rule]
                subprocess.run(command, capture_output=True, check=False)

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
        """How much of `spot` or `on-demand` Karpenter can buy."""
        self._call("capacity", self.name, kind, *options)

    def _call(self, *arguments: str) -> str:
        return call([str(tool()), *arguments])


def call(command: Sequence[str], *, given: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run it; what it printed. Fails with what it said."""
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
