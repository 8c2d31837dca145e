"""helm and kubectl of clusters that are files: for tests of the rollout with the real Pulumi and no API server.

`install` puts both programs into a folder for the PATH. A cluster is a JSON file named like the context.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

VARIABLE = "FAKE_CLUSTERS"


def install(folder: Path) -> Path:
    """The folder with the programs."""
    folder.mkdir(parents=True)
    for name in ("helm", "kubectl"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {name} "$@"\n')
        script.chmod(0o755)
    return folder


class FakeCluster:
    """`drift` are objects that differ, `jobs` TieredJobs; a cluster that is `down` does not answer."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.json"
        self.state: dict[str, Any] = {"releases": {}, "objects": {}, "drift": [], "jobs": [], "calls": []}
        if self.path.exists():
            self.state.update(json.loads(self.path.read_text()))

    def save(self) -> None:
        """Replaces the file atomically, so that a killed program leaves a complete one."""
        scratch = self.path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(self.state))
        scratch.replace(self.path)

    def revision(self, release: str) -> int:
        """The newest revision; 0 when there is none."""
        found = self.state["releases"].get(release)
        return int(found[-1]["revision"]) if found else 0


def _option(arguments: list[str], *names: str) -> str:
    for index, argument in enumerate(arguments):
        for name in names:
            if argument == name:
                return arguments[index + 1]
            if argument.startswith(f"{name}="):
                return argument.partition("=")[2]
    return ""


def _helm(arguments: list[str]) -> int:
    cluster = FakeCluster(Path(os.environ[VARIABLE]), _option(arguments, "--kube-context"))
    rest = arguments[2:]
    cluster.state["calls"].append(["helm", *rest[:3]])
    releases = cluster.state["releases"]
    verb = rest[0]
    if verb == "upgrade":
        return _upgrade(cluster, rest)
    if verb == "template":
        print("---\nkind: CustomResourceDefinition\nmetadata:\n  name: as.example.com\n")
        return 0
    if verb == "list":
        fields = ("name", "namespace", "revision", "status", "chart")
        print(json.dumps([{key: str(found[-1][key]) for key in fields} for found in releases.values()]))
        return 0
    name = rest[2] if verb == "get" else rest[1]
    if name not in releases:
        if verb == "uninstall":
            return 0
        print("Error: release: not found", file=sys.stderr)
        return 1
    history = releases[name]
    if verb == "get":
        newest = history[-1]
        line = "{revision} {status} {version}".format(**newest)
        print(f"{line}\n{newest['manifest']}" if rest[1] == "all" else json.dumps(newest["values"]))
    elif verb == "rollback":
        old = next(entry for entry in history if entry["revision"] == int(rest[2]))
        history.append({**old, "revision": history[-1]["revision"] + 1})
    elif verb == "uninstall":
        del releases[name]
    cluster.save()
    return 0


def _upgrade(cluster: FakeCluster, rest: list[str]) -> int:
    name, chart = rest[2], Path(rest[3])
    values = json.loads(sys.stdin.read())
    version = next(line.split()[1] for line in (chart / "Chart.yaml").read_text().splitlines() if "version:" in line)
    revision = cluster.revision(name) + 1
    namespace = _option(rest, "--namespace")
    made = {
        "name": name, "namespace": namespace, "revision": revision, "status": "deployed", "version": version,
        "chart": f"{chart.name}-{version}", "values": values,
        "manifest": f"---\nkind: Deployment\nmetadata: {{name: {name}}}\n",
    }  # fmt: skip
    labels = dict(pair.split("=") for pair in _option(rest, "--labels").split(","))
    made["labels"] = labels
    pending = f"secret/{namespace}/sh.helm.release.v1.{name}.v{revision}"
    if pending in cluster.state["objects"]:
        message = "UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
        print(f"Error: {message}", file=sys.stderr)
        return 1
    if values.get("hang") and not cluster.state.get("hung"):
        labels |= {"version": str(revision), "status": "pending-upgrade", "name": name}
        metadata = {"name": pending.rpartition("/")[2], "labels": labels}
        cluster.state["objects"][pending] = {"kind": "Secret", "metadata": metadata}
        cluster.state["hung"] = True
        cluster.save()
        import time

        time.sleep(30)
    cluster.state["releases"].setdefault(name, []).append(made)
    cluster.save()
    if _option(rest, "--output") == "json":
        release = {key: made[key] for key in ("name", "namespace", "manifest")}
        print(json.dumps({**release, "version": revision, "chart": {"metadata": {"version": version}}}))
    return 0


def _kubectl(arguments: list[str]) -> int:
    cluster = FakeCluster(Path(os.environ[VARIABLE]), _option(arguments, "--context"))
    rest = arguments[2:]
    namespace = _option(rest, "--namespace") or "default"
    objects = cluster.state["objects"]
    if "diff" in rest:
        given = sys.stdin.read()
        found = [name for name in cluster.state["drift"] if f"{{name: {name}}}" in given]
        for name in found:
            print(f"Files /tmp/LIVE-1/apps.v1.Deployment.{namespace}.{name} and /tmp/MERGED-1/x differ")
        return int(bool(found))
    if rest[0] == "get":
        return _get(cluster, rest, namespace)
    if rest[0] in ("apply", "create"):
        _apply(cluster, sys.stdin.read(), namespace)
    elif rest[0] == "delete":
        kind, _, name = rest[1].partition("/")
        for one in [name] if name else [part for part in rest[2:] if not part.startswith("-")]:
            objects.pop(f"{kind}/{namespace}/{one}", None)
    elif rest[0] == "patch":
        for job in cluster.state["jobs"]:
            if job["metadata"]["name"] == rest[2]:
                job["spec"]["suspend"] = True
                job["status"]["phase"] = "Suspended"
    elif rest[0] == "config":
        print(json.dumps({"clusters": [{"cluster": {"server": "https://192.0.2.1:6443", "tls-server-name": "api"}}]}))
    cluster.state["calls"].append(["kubectl", *rest[:3]])
    cluster.save()
    return 0


def _apply(cluster: FakeCluster, text: str, namespace: str) -> None:
    if not text.startswith("{"):  # CRDs
        return
    one = json.loads(text)
    kind, metadata = one["kind"].lower(), one["metadata"]
    if kind == "tieredjob":
        one["status"] = {"phase": cluster.state.get("phase", "Succeeded"), "progress": {"step": 10}}
        cluster.state["submitted"] = one
    cluster.state["objects"][f"{kind}/{metadata.get('namespace', namespace)}/{metadata['name']}"] = one


def _get(cluster: FakeCluster, rest: list[str], namespace: str) -> int:
    kind = rest[1]
    name = rest[2] if len(rest) > 2 and not rest[2].startswith("-") else ""
    if kind == "deployment":
        history = cluster.state["releases"].get(name)
        if history:
            wanted = 1
            ready = 0 if "typo" in json.dumps(history[-1]["values"]) else 1
            status = {"observedGeneration": 1, "updatedReplicas": ready, "availableReplicas": ready, "replicas": 1}
            spec = {"replicas": wanted, "selector": {"matchLabels": {"app": name}}}
            metadata = {"name": name, "generation": 1}
            print(json.dumps({"kind": "Deployment", "metadata": metadata, "spec": spec, "status": status}))
        return 0
    if kind == "pods":
        waiting = {"state": {"waiting": {"reason": "ErrImageNeverPull"}}, "image": "r:typo"}
        print(json.dumps({"items": [{"metadata": {"name": "p"}, "status": {"containerStatuses": [waiting]}}]}))
    elif kind == "tieredjobs":
        print(json.dumps({"items": cluster.state["jobs"]}))
    elif kind == "nodeclaims.karpenter.sh":
        claims = cluster.state.get("claims", [])
        print(json.dumps({"items": claims[:1]}))
        cluster.state["claims"] = claims[1:]
        cluster.save()
    elif kind == "deployments.apps":
        print(json.dumps({"items": cluster.state.get("deployments", [])}))
    elif kind == "secret" and name == "spotladder-token":
        print(json.dumps({"data": {"token": "dG9rZW4=", "ca.crt": "Y2E="}}))
    elif kind == "secrets":
        selected = _option(rest, "--selector")
        found = [
            value
            for key, value in cluster.state["objects"].items()
            if key.startswith("secret/") and f"name={value['metadata'].get('labels', {}).get('name')}," in selected
        ]
        if selected.endswith(",spotladder-host"):
            history = cluster.state["releases"].get(selected.split(",")[1].removeprefix("name="), [])
            found = [{"metadata": {"labels": entry["labels"]}} for entry in history]
        print(json.dumps({"items": found}))
    elif kind == "crd" and cluster.state.get("karpenter"):
        print(json.dumps({"metadata": {"name": name}}))
    elif f"{kind}/{namespace}/{name}" in cluster.state["objects"]:
        print(json.dumps(cluster.state["objects"][f"{kind}/{namespace}/{name}"]))
    return 0


def _down(arguments: list[str]) -> bool:
    """Whether the cluster that the command names is unavailable."""
    name = _option(arguments, "--context", "--kube-context")
    return bool(name) and bool(FakeCluster(Path(os.environ[VARIABLE]), name).state.get("down"))


if __name__ == "__main__":
    if _down(sys.argv[2:]):
        sys.exit("Unable to connect to the server: dial tcp 192.0.2.1:6443: i/o timeout")
    with (Path(os.environ[VARIABLE]) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Pulumi applies CRDs of several charts at once
        sys.exit({"helm": _helm, "kubectl": _kubectl}[sys.argv[1]](sys.argv[2:]))
