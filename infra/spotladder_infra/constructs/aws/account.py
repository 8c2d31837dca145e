"""The account in which a stack is applied, as Terraform expressions."""

from __future__ import annotations

from typing import Any

from cdktn_aws import meta_data_sources, sts

from spotladder_infra.iam import PolicyScope


def place_of(scope: Any, region: str) -> PolicyScope:
    """Where the stack's resources are; partition and account are looked up when it is applied."""
    account = sts.DataAwsCallerIdentity(scope, "account")
    partition = meta_data_sources.DataAwsPartition(scope, "partition")
    return PolicyScope(partition.partition, account.account_id, region)
