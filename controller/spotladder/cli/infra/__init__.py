"""`spotladder infra`: the commands that the make targets for infrastructure call.

The packages of a cloud are imported only by the command that needs them.
"""

from __future__ import annotations

import typer

from spotladder.cli.infra import access, bootstrap, comparison, costs, destroy, doctor, fleet, rollout, stacks, upgrade
from spotladder.cli.invocation import refuse_without_command
from spotladder.cli.option_groups import with_option_groups

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
    refuse_without_command(context)


for _command, _listed in (
    (fleet.validate, "Check a fleet file."),
    (doctor.doctor, "Check this machine and the accounts for a fleet."),
    (costs.plan, "Show what bootstrap would change, and the cost."),
    (stacks.state, "Create the bucket for Terraform's state."),
    (stacks.synth, "Write the Terraform stacks of the clusters."),
    (stacks.permissions, "Print the permissions that a cluster's stack needs."),
    (stacks.explain, "Show the bring-up of a cluster hop by hop."),
    (bootstrap.bootstrap, "Create the clusters, or change them."),
    (access.kubeconfig, "Write a kubeconfig for the clusters on aws and gcp."),
    (destroy.destroy, "Delete the clusters and what belongs to them."),
    (rollout.rollout, "Install or upgrade the components of the clusters."),
    (comparison.status, "Show the version and state of each component."),
    (comparison.drift, "Find manual changes in the clusters."),
    (rollout.rollback, "Restore the last good rollout of the clusters."),
    (upgrade.upgrade, "Upgrade the components while jobs train."),
    (fleet.render, "Print the values of the chart spotladder-pools."),
    (fleet.schema, "Print the JSON schema of a fleet file."),
):
    app.command(short_help=_listed)(with_option_groups(_command))
app.command(hidden=True)(access.token)  # for kubectl
