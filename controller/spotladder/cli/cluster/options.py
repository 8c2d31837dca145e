"""The options that all commands of a cluster have, as kubectl has them."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.cluster import names

JobArgument = Annotated[str, typer.Argument(metavar="NAME", parser=names.job, help="The TieredJob.")]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="<str>",
        parser=names.namespace,
        help="The job's namespace. Default: the context's.",
    ),
]
ContextOption = Annotated[str | None, typer.Option("--context", help="The kubeconfig's context.")]
KubeconfigOption = Annotated[
    str | None, typer.Option("--kubeconfig", help="Default: $KUBECONFIG, a pod's service account, ~/.kube/config.")
]
ContextForOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context-for",
        metavar="CLUSTER=CONTEXT",
        help="The context of another cluster that attempts run in, may be repeated. Default: the one of the same name.",
    ),
]
