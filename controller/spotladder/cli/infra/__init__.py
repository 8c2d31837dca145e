"""`spotladder infra`: what the make targets for infrastructure call.

The packages of a cloud are imported only by the command that needs them.
"""

from __future__ import annotations

import typer

from spotladder.cli.infra import access, bootstrap, costs, destroy, doctor, fleet, rollout, stacks

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Create clusters, pools and checkpoint buckets from one fleet file.

    \b
    Examples:
      spotladder infra validate --fleet fleet.yaml
      spotladder infra plan
      spotladder infra bootstrap --cluster east
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


for _command in (
    fleet.validate,
    doctor.doctor,
    costs.plan,
    stacks.state,
    stacks.synth,
    stacks.picture,
    bootstrap.bootstrap,
    access.kubeconfig,
    access.token,
    destroy.destroy,
    rollout.rollout,
    rollout.preview,
    rollout.status,
    rollout.drift,
    rollout.rollback,
    rollout.upgrade,
    fleet.render,
    fleet.schema,
):
    app.command()(_command)
app.command("apply", hidden=True)(bootstrap.bootstrap)
