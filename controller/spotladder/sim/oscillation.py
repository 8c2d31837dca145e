"""The error of both simulators for a policy that contradicts itself."""

from __future__ import annotations

from spotladder.core.model import Seconds
from spotladder.core.policies import Policy
from spotladder.errors import SpotladderError


class PolicyOscillates(SpotladderError):
    """The policy moves the job back and forth at one moment, `at` seconds after the start: a defect of the policy."""

    def __init__(self, policy: Policy, at: Seconds) -> None:
        super().__init__(f"policy {type(policy).__name__} moves the job back and forth at {at:g} s")
