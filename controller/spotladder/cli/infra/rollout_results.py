"""The result of each cluster of a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.cli.output import Format, print_data, print_table
from spotladder.errors import EnvironmentFailure

if TYPE_CHECKING:
    from spotladder_infra.rollout.waves import ClusterResult


def print_results(results: list[ClusterResult], output: Format) -> None:
    """Prints the result of each cluster. Raises EnvironmentFailure with the remedy if one has failed."""
    from spotladder_infra.rollout.inspection import failure_of
    from spotladder_infra.rollout.waves import ClusterOutcome

    failed = [found for found in results if found.outcome is ClusterOutcome.FAILED]
    if output is Format.TABLE:
        notes = {found.cluster: f", {found.message}" for found in results if found.message and found not in failed}
        print_table(("Cluster", "Result"), [(at.cluster, f"{at.outcome}{notes.get(at.cluster, '')}") for at in results])
    else:
        data = [{"cluster": at.cluster, "result": str(at.outcome), "message": at.message} for at in results]
        print_data(data, output)
    if failed:
        lines = [failure_of(found.cluster, found.message) for found in failed]
        if clusters := "".join(f" --cluster {found.cluster}" for found in failed if not found.final):
            lines.append(
                "correct the cause and run the same command again to continue, or restore the last good rollout, if "
                f"any: spotladder infra rollback{clusters}; spotladder infra status{clusters} shows what is installed"
            )
        raise EnvironmentFailure("\n".join(lines))
