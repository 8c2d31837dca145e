"""Scenarios of tests/kube that need only the API of the server in memory: `make test` runs the reconciler
through them in seconds, without a real API server."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

import pytest

from tests.kube import (
    test_bad_input,
    test_blocked,
    test_checkpoint_access,
    test_clusters,
    test_ends,
    test_faults,
    test_guards,
    test_walk,
)
from tests.operator.member_cluster import two_clusters_in_memory
from tests.operator.memory_world import filled_world

SCENARIOS: tuple[Callable[..., Awaitable[None]], ...] = (
    test_bad_input.test_an_unknown_capacity_tier_holds_the_job_until_it_exists,
    test_bad_input.test_the_message_of_an_invalid_spec_names_the_field,
    test_blocked.test_a_rejected_rayjob_is_recreated_with_its_number_once_the_job_is_corrected,
    test_checkpoint_access.test_a_job_starts_once_the_credentials_secret_exists,
    test_checkpoint_access.test_the_first_attempt_waits_until_the_owner_of_the_log_is_known,
    test_checkpoint_access.test_with_a_damaged_log_no_attempt_starts,
    test_ends.test_a_deleted_job_reports_why_it_waits_and_can_be_forced,
    test_ends.test_a_pod_of_a_job_on_a_silent_node_is_marked_failed,
    test_ends.test_a_recreated_job_does_not_adopt_the_attempt_of_the_first,
    test_ends.test_the_outcome_is_appended_to_the_log_once,
    test_faults.test_a_job_continues_after_a_restore_of_etcd,
    test_faults.test_nothing_is_written_when_nothing_changes,
    test_guards.test_deleted_guards_of_a_running_attempt_are_created_again,
    test_guards.test_the_guards_of_a_job_that_is_being_deleted_are_not_created_again,
    test_walk.test_lost_workers_lead_to_the_next_tier_and_the_job_succeeds,
)

TWO_CLUSTERS: tuple[Callable[..., Awaitable[None]], ...] = (
    test_clusters.test_a_job_leaves_a_lost_cluster_which_is_cleaned_up_after_it_returns,
    test_clusters.test_a_job_moves_from_one_cluster_to_the_other,
    test_clusters.test_a_short_outage_ends_no_attempt,
    test_clusters.test_objects_of_a_deleted_job_are_cleaned_up_and_others_are_kept,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.removeprefix("test_"))
async def test_a_scenario_of_the_controller_in_memory(
    scenario: Callable[..., Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[scenario.__module__], "world", filled_world)
    await scenario(None)  # The tests use the API server only through `world`.


@pytest.mark.parametrize("scenario", TWO_CLUSTERS, ids=lambda scenario: scenario.__name__.removeprefix("test_"))
async def test_a_scenario_of_two_clusters_in_memory(
    scenario: Callable[..., Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_clusters, "two_clusters", lambda _home, _east: two_clusters_in_memory(monkeypatch))
    await scenario(None, None)
