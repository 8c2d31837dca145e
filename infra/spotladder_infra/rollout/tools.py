"""Runs helm and kubectl against one cluster, and turns their failures into one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import manifest

Object = dict[str, Any]

NEEDED: Mapping[str, str] = {
    "pulumi": "https://www.pulumi.com/docs/install",
    "helm": "https://helm.sh/docs/intro/install",
    "kubectl": "https://kubernetes.io/docs/tasks/tools",
}

FIELD_MANAGER = "spotladder-rollout"
"""Owner of the fields that the rollout itself applies, in server-side apply."""

COMMAND_TIMEOUT = 300.0
"""Seconds for one call of helm or kubectl. Waiting for pods is not part of a call."""


REMEDIES: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(r"context .*does not exist|context was not found"),
        "correct the cluster's context in the fleet file, or KUBECONFIG (kubectl config get-contexts lists them)",
    ),
    (
        re.compile(
            r"Unauthorized|must be logged in|provide credentials|getting credentials|exec plugin", re.IGNORECASE
        ),
        "sign in again, then try: kubectl --context {context} version",
    ),
    (
        re.compile(
            r"was refused|connection refused|unable to connect|unreachable|no such host|i/o timeout|no route to host|"
            "x509|no configuration has been provided",
            re.IGNORECASE,
        ),
        "check that the API server runs and that this machine reaches it: kubectl --context {context} version",
    ),
)
"""Remedies for failures of the connection to a cluster, by the text of kubectl or helm; the first match applies."""


class CommandFailure(EnvironmentFailure):
    """helm or kubectl failed. `printed` is the end of its output; the message also has a remedy."""

    def __init__(self, printed: str, remedy: str = "") -> None:
        super().__init__(f"{printed}{remedy}")
        self.printed = printed


def require(*names: str) -> None:
    """Raises EnvironmentFailure when one of the programs is missing."""
    for name in names:
        if shutil.which(name) is None:
            raise EnvironmentFailure(f"{name} is not on the PATH: install it ({NEEDED[name]})")


@dataclass(frozen=True, slots=True)
class Tools:
    """helm and kubectl of one cluster. `timeout` is seconds for one call."""

    target: KubeContext
    timeout: float = COMMAND_TIMEOUT

    def helm(self, *arguments: str, given: str | None = None) -> str:
        """Runs helm and returns its output. Raises CommandFailure."""
        command = ["helm", "--kube-context", self.target.context, *arguments]
        return _checked(command, self.target.environment(), given, self.timeout)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Runs kubectl and returns its output. Raises CommandFailure."""
        command = ["kubectl", "--context", self.target.context, *arguments]
        return _checked(command, self.target.environment(), given, self.timeout)

    def get(self, *arguments: str) -> Object | None:
        """An object or a list as JSON; None if it or its kind does not exist."""
        try:
            text = self.kubectl("get", *arguments, "--ignore-not-found", "-o", "json")
        except CommandFailure as error:
            if "the server doesn't have a resource type" in str(error):
                return None
            raise
        found: Object | None = json.loads(text) if text.strip() else None
        return found

    def items(self, *arguments: str) -> list[Object]:
        """The objects of a list; none when their kind does not exist."""
        found = self.get(*arguments) or {}
        items: list[Object] = found.get("items", [])
        return items

    def apply(self, objects: str) -> None:
        """Applies objects with our field manager. Raises CommandFailure."""
        manager = f"--field-manager={FIELD_MANAGER}"
        self.kubectl("apply", "--server-side", "--force-conflicts", manager, "-f", "-", given=objects)

    def changes(self, rendered: str, namespace: str) -> list[str]:
        """The objects, as KIND/NAME, whose fields differ from a manifest. Raises CommandFailure.

        `namespace` applies to objects without one. They are compared under our own field manager: Helm adds a label
        and annotations to what it applies, which under Helm's manager would count as removed.
        """
        named, unnamed = manifest.by_namespace(rendered)
        found = [*self._changes(named, []), *self._changes(unnamed, ["--namespace", namespace])]
        return sorted(set(found))

    def _changes(self, texts: list[str], options: list[str]) -> list[str]:
        if not texts:
            return []
        command = [
            "kubectl", "--context", self.target.context, *options, "diff", "--server-side", "--force-conflicts",
            f"--field-manager={FIELD_MANAGER}", "--concurrency=8", "-f", "-",
        ]  # fmt: skip
        environment = {**self.target.environment(), "KUBECTL_EXTERNAL_DIFF": "diff -N -q"}
        done = _run(command, environment, manifest.joined(texts), self.timeout)
        if done.returncode > 1:
            message = _last_line(done.stderr)
            raise CommandFailure(f"kubectl diff: {message}", _remedy(message, self.target.context))
        return [_object(line) for line in done.stdout.splitlines() if line.startswith("Files ")]


OFFLINE = Tools(KubeContext("", ""))
"""helm, for commands that contact no cluster."""


def _object(line: str) -> str:
    """The object of a line `Files /tmp/LIVE-1/apps.v1.Deployment.NAMESPACE.NAME and … differ`, as Kind/name."""
    file = line.split(" and ", maxsplit=1)[0].rpartition("/")[2]
    parts = file.split(".")
    kind = next((index for index, part in enumerate(parts) if part[:1].isupper()), 0)
    return f"{parts[kind]}/{'.'.join(parts[kind + 2 :])}"


def _checked(command: list[str], environment: Mapping[str, str], given: str | None, timeout: float) -> str:
    done = _run(command, environment, given, timeout)
    if done.returncode:
        words = " ".join([command[0], *command[3:5]])
        message = _last_line(done.stderr or done.stdout)
        raise CommandFailure(f"{words}: {message}", _remedy(message, command[2]))
    return done.stdout


def _remedy(message: str, context: str) -> str:
    for pattern, remedy in REMEDIES:
        if pattern.search(message):
            return f" (context {context}): {remedy.format(context=context)}"
    return ""


def _run(
    command: list[str], environment: Mapping[str, str], given: str | None, timeout: float = COMMAND_TIMEOUT
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env={**os.environ, **environment},
        )
    except FileNotFoundError:
        raise EnvironmentFailure(f"{command[0]} is not on the PATH: install it ({NEEDED[command[0]]})") from None
    except subprocess.TimeoutExpired:
        raise CommandFailure(f"{command[0]} {command[3]}: no answer in {timeout:g} s") from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    wanted = [line for line in lines if line.lower().startswith("error")]
    return " ".join((wanted or lines or ["no message"])[-1].split())
