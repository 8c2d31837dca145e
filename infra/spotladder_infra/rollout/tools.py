"""Runs helm and kubectl against one cluster, and turns their failures into one line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any

from spotladder_infra import programs
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.programs import CommandFailure, error_line
from spotladder_infra.rollout import manifest

Object = dict[str, Any]

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


@dataclass(frozen=True, slots=True)
class Tools:
    """helm and kubectl of one cluster. `timeout` is seconds for one call."""

    target: KubeContext
    timeout: float = COMMAND_TIMEOUT

    def helm(self, *arguments: str, given: str | None = None) -> str:
        """Runs helm and returns its output. Raises CommandFailure."""
        return self._checked(["helm", "--kube-context", self.target.context, *arguments], given)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Runs kubectl and returns its output. Raises CommandFailure."""
        return self._checked(["kubectl", "--context", self.target.context, *arguments], given)

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
        given = manifest.joined(texts)
        # `diff` writes in the language of the user, unless LC_ALL is C.
        done = self._run(command, "kubectl diff", given, KUBECTL_EXTERNAL_DIFF="diff -N -q", LC_ALL="C")
        if done.returncode > 1:
            raise self._failure("kubectl diff", done.stderr)
        return [_object(line) for line in done.stdout.splitlines() if line.startswith("Files ")]

    def _checked(self, command: list[str], given: str | None) -> str:
        words = " ".join([command[0], *command[3:5]])
        done = self._run(command, words, given)
        if done.returncode:
            raise self._failure(words, done.stderr or done.stdout)
        return done.stdout

    def _run(self, command: list[str], words: str, given: str | None, **more: str) -> CompletedProcess[str]:
        environment = {**self.target.environment(), **more}
        return programs.run(command, words, given=given, timeout=self.timeout, **environment)

    def _failure(self, words: str, printed: str) -> CommandFailure:
        message, context = error_line(printed), self.target.context
        remedies = (remedy for pattern, remedy in REMEDIES if pattern.search(message))
        remedy = next((f" (context {context}): {text.format(context=context)}" for text in remedies), "")
        return CommandFailure(f"{words}: {message}", remedy)


OFFLINE = Tools(KubeContext("", ""))
"""helm, for commands that contact no cluster."""


def _object(line: str) -> str:
    """The object of a line `Files /tmp/LIVE-1/apps.v1.Deployment.NAMESPACE.NAME and … differ`, as Kind/name."""
    file = line.split(" and ", maxsplit=1)[0].rpartition("/")[2]
    parts = file.split(".")
    kind = next((index for index, part in enumerate(parts) if part[:1].isupper()), 0)
    return f"{parts[kind]}/{'.'.join(parts[kind + 2 :])}"
