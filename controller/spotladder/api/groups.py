"""Which groups of a workload's pods are on the tier: they get its nodes, their number is the number of workers, and
their losses are the tier's failures.

The groups that ask for accelerators are on the tier. If none asks for one, all are. A group that a tier names in
`groups` is not. The pods of the other groups are auxiliary: they keep their own node selectors, and no loss of them is
a failure of the tier.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

MAX_PODS = 100_000
"""Maximum number of pods of an attempt. The controller keeps all of them in its memory."""


def on_tier(groups: Sequence[tuple[str, bool]], elsewhere: Collection[str] = ()) -> tuple[bool, ...]:
    """For each group, given as its name and whether it asks for accelerators, whether it is on the tier. `elsewhere`
    are the groups that have a CapacityTier of their own."""
    alike = not any(asks for name, asks in groups if name not in elsewhere)
    return tuple((asks or alike) and name not in elsewhere for name, asks in groups)
