"""The arguments and options that cluster commands share, with kubectl's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from spotladder.cli import kubernetes_names
from spotladder.errors import Refused

JobArgument = Annotated[str, typer.Argument(metavar="NAME", parser=kubernetes_names.job, help="Name of the TieredJob.")]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        parser=kubernetes_names.namespace,
        help="Namespace of the job. Default: the context's namespace.",
    ),
]
ContextOption = Annotated[str | None, typer.Option("--context", help="Context in the kubeconfig.")]
KubeconfigOption = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, a pod's service account, ~/.kube/config."),
]
ContextForOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context-for",
        metavar="CLUSTER=CONTEXT",
        help="Context of another cluster with attempts of the job; repeatable. Default: the context with the "
        "cluster's name.",
    ),
]


def contexts_given(values: Iterable[str] | None) -> Mapping[str, str]:
    """The values of --context-for. Raises Refused."""
    given = {}
    for value in values or ():
        name, _, context = value.partition("=")
        if not (name and context):
            raise Refused(f"--context-for {value}: expected CLUSTER=CONTEXT, such as east=prod-east")
        given[name] = context
    return given
