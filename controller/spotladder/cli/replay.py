"""`spotladder sim replay`: makes the recorded decisions of a job again, with any policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.local.selection import StateDirOption
from spotladder.cli.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.policies import policies
from spotladder.cli.recorded import JobOrAddress, recorded_of
from spotladder.cli.target import ClusterTarget
from spotladder.core.model import Instant, Move
from spotladder.display.figures import money, span
from spotladder.errors import EnvironmentFailure
from spotladder.records.replay import Answers, Difference, answers, recorded_decisions

if TYPE_CHECKING:
    from collections.abc import Sequence

DIFFERENT = 1
"""Exit code if the policy of the job decides differently now."""

COLUMNS = ("Policy", "Decisions", "Different", "Same tier", "Other tiers", "Paid there", "Estimated", "No estimate")

MAX_SHOWN = 10
"""Maximum number of different decisions in the table."""


def replay(
    job: JobOrAddress,
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A policy to decide with; repeat it. Default: the policy of the job."),
    ] = None,
    output: OutputOption = Format.TABLE,
    state_dir: StateDirOption = None,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Make the recorded decisions of a job again with another policy, and estimate what it would have saved.

    The policy decides in each recorded situation of the job; nothing is started. The estimate prices the nodes that
    the job held at the price of the tier that the policy would use. It knows no eviction there, and no later start or
    end of the job: spotladder plan simulates those.

    Without --policy, the exit code is 1 if this version of spotladder decides differently than recorded.

    \b
    Examples:
      spotladder sim replay digits --policy on-demand --policy adaptive
      spotladder sim replay s3://bucket/prefix/digits
    """
    recorded = recorded_of(job, ClusterTarget(namespace, context, kubeconfig), state_dir)
    decisions = recorded_decisions(recorded.records)
    if not decisions:
        raise EnvironmentFailure(f"{job}: its records have no decision: run the job first")
    named = policies(policy or [decisions[-1].policy])
    found = [answers(decisions, name, each) for name, each in named.items()]
    if output is not Format.TABLE:
        print_data({"policies": [_plain(each) for each in found]}, output)
    else:
        _print(found, recorded.records[0].at)
    if policy is None and found[0].differences:
        raise typer.Exit(DIFFERENT)


def _print(found: Sequence[Answers], began: Instant) -> None:
    rows = [
        (
            each.policy,
            str(each.decisions),
            str(len(each.differences)),
            span(each.agreed),
            ", ".join(f"{tier} {span(seconds)}" for tier, seconds in each.others.items()) or "-",
            money(each.actual_usd),
            money(each.estimated_usd),
            span(each.uncounted) if each.uncounted else "-",
        )
        for each in found
    ]
    print_table(COLUMNS, rows)
    for each in found:
        for difference in each.differences[:MAX_SHOWN]:
            typer.echo(f"{each.policy}, after {span(difference.at - began)}: {_sentence(difference)}")
        if (more := len(each.differences) - MAX_SHOWN) > 0:
            typer.echo(f"{each.policy}: {more} more differences; --output json has all of them")


def _sentence(difference: Difference) -> str:
    where = f" on {difference.tier}" if difference.tier else ""
    return f"{_moves(difference.instead)}{where} instead of {_moves(difference.moves)}"


def _moves(moves: Sequence[Move]) -> str:
    return ", ".join(f"{move.source} → {move.target} ({move.reason})" for move in moves) or "no change"


def _plain(found: Answers) -> dict[str, Any]:
    return {
        "policy": found.policy,
        "decisions": found.decisions,
        "differences": [
            {"at": one.at, "tier": one.tier, "recorded": _moves(one.moves), "instead": _moves(one.instead)}
            for one in found.differences
        ],
        "sameTierSeconds": round(found.agreed, 1),
        "otherTierSeconds": {tier: round(seconds, 1) for tier, seconds in found.others.items()},
        "paidUsd": round(found.actual_usd, 6),
        "estimatedUsd": round(found.estimated_usd, 6),
        "withoutEstimateSeconds": round(found.uncounted, 1),
    }
