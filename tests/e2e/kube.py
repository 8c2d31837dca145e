"""kubectl and helm, as users run them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.provider import call, program

Object = dict[str, Any]


@dataclass(frozen=True)
class Kube:
    """One cluster's API, in one namespace."""

    kubeconfig: Path
    namespace: str = "default"

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Run kubectl and return its output."""
        return call([str(program("kubectl")), f"--namespace={self.namespace}", *arguments], given=given, env=self._env)

    def helm(self, *arguments: str) -> str:
        """Run helm and return its output."""
        return call([str(program("helm")), f"--namespace={self.namespace}", *arguments], env=self._env)

    def apply(self, *objects: Object) -> None:
        """Create or change the objects, as a user does."""
        self.run("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, kind: str, name: str) -> Object | None:
        """One object; None if it does not exist."""
        text = self.run("get", kind, name, "--ignore-not-found", "-o", "json")
        found: Object | None = json.loads(text) if text.strip() else None
        return found

    def list(self, kind: str, labels: str = "") -> list[Object]:
        """All objects of a kind."""
        items: list[Object] = json.loads(self.run("get", kind, "-l", labels, "-o", "json"))["items"]
        return items

    def patch(self, kind: str, name: str, body: Object) -> None:
        """Change the object like `kubectl edit`."""
        self.run("patch", kind, name, "--type=merge", "-p", json.dumps(body))

    def delete(self, kind: str, name: str, *options: str) -> None:
        """Delete the object if it exists."""
        self.run("delete", kind, name, "--ignore-not-found", *options)

    @property
    def _env(self) -> Mapping[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}
