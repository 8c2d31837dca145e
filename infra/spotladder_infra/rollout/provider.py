"""Pulumi's resources: a Helm release, and the CRDs of a chart.

The engine runs this module in a separate process. Settings that differ between machines (kubeconfig, paths of charts,
time limits) are passed in the environment, so that the state does not contain them; the state has names, versions,
digests and values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import crds
from spotladder_infra.rollout.release import Release
from spotladder_infra.rollout.tools import Tools

VARIABLE = "SPOTLADDER_ROLLOUT"

Properties = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """The settings of a provider on this machine.

    `charts` are paths by chart name; `restore` are the Helm revisions to restore, by release; None in a rollout.
    """

    kubeconfig: str
    context: str
    charts: dict[str, str]
    timeout: float
    restore: dict[str, int] | None = None

    def environment(self) -> dict[str, str]:
        """The variables of the engine's process."""
        return {VARIABLE: json.dumps(asdict(self))}

    @property
    def tools(self) -> Tools:
        """helm and kubectl of the cluster."""
        return Tools(KubeContext(self.kubeconfig, self.context))


def _context() -> Context:
    return Context(**json.loads(os.environ[VARIABLE]))


def _chart(context: Context, name: str) -> str:
    if name not in context.charts:
        raise EnvironmentFailure(f"chart {name} is not on this machine: specify a folder with --charts")
    return context.charts[name]


class ReleaseProvider(ResourceProvider):
    """Creates, compares and removes Helm releases."""

    serialize_as_secret_always = False

    def create(self, props: Properties) -> CreateResult:
        """Installs the release, or restores a revision of its history."""
        return CreateResult(props["release"], {**props, **self._changed(props)})

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Upgrades the release, or restores a revision of its history."""
        return UpdateResult({**_news, **self._changed(_news)})

    def _changed(self, props: Properties) -> Properties:
        context = _context()
        release = Release(context.tools, props["release"], props["namespace"])
        with _one_line():
            revision = (context.restore or {}).get(release.name)
            if revision is not None:
                made = release.restore(revision, context.timeout)
            else:
                made = release.install(_chart(context, props["chart"]), props["values"], context.timeout)
        return {"revision": str(made), "drift": "[]"}

    def read(self, id_: str, props: Properties) -> ReadResult:
        """The live release; an empty id if it does not exist."""
        release = Release(_context().tools, id_, props["namespace"])
        with _one_line():
            live = release.live()
            if not live.revision:
                return ReadResult("", {})
            drift = release.drift(live, int(props.get("revision") or 0))
        return ReadResult(id_, {**props, "drift": json.dumps(drift)})

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """A change of chart, values or namespace, or drift."""
        return _difference(_olds, _news, ("chart", "version", "digest", "values"), replace=("release", "namespace"))

    def delete(self, _id: str, _props: Properties) -> None:
        """Uninstalls the release."""
        with _one_line():
            Release(_context().tools, _id, _props["namespace"]).remove()


class CrdsProvider(ResourceProvider):
    """Applies the CRDs of a chart. Deleting the resource leaves them: deleting a CRD deletes all its objects."""

    serialize_as_secret_always = False

    def create(self, props: Properties) -> CreateResult:
        """Applies them."""
        return CreateResult(props["chart"], {**props, **self._changed(props)})

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Applies them."""
        return UpdateResult({**_news, **self._changed(_news)})

    def _changed(self, props: Properties) -> Properties:
        context = _context()
        if context.restore is not None:
            return {"drift": "[]"}
        with _one_line():
            crds.apply(context.tools, crds.of_chart(context.tools, _chart(context, props["chart"])))
        return {"drift": "[]"}

    def read(self, id_: str, props: Properties) -> ReadResult:
        """The live CRDs, compared with the chart."""
        context = _context()
        if context.restore is not None or props["chart"] not in context.charts:
            return ReadResult(id_, props)
        with _one_line():
            found = crds.drift(context.tools, crds.of_chart(context.tools, _chart(context, props["chart"])))
        return ReadResult(id_, {**props, "drift": json.dumps(found)})

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """A changed version or digest, or drift. None in a rollback, which leaves CRDs as they are: stored objects may
        have fields that only the newer ones know. The state keeps the version that the cluster has."""
        if _context().restore is not None:
            return DiffResult(changes=False)
        return _difference(_olds, _news, ("version", "digest"), replace=("chart",))

    def delete(self, _id: str, _props: Properties) -> None:
        """Leaves them."""


def _difference(olds: Properties, news: Properties, fields: tuple[str, ...], replace: tuple[str, ...]) -> DiffResult:
    changed = [name for name in fields if olds.get(name) != news.get(name)]
    replaced = [name for name in replace if olds.get(name) != news.get(name)]
    drifted = olds.get("drift", "[]") not in ("[]", None)
    return DiffResult(changes=bool(changed or replaced or drifted), replaces=replaced, delete_before_replace=True)


@contextmanager
def _one_line() -> Iterator[None]:
    """Passes only the message of an error to the engine."""
    try:
        yield
    except SpotladderError as error:
        raise RuntimeError(str(error)) from None


class StackResource(Resource):
    """A resource of a stack: the release or the CRDs that its provider changes."""
