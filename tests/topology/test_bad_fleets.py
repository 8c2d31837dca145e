"""Mistakes of first users of a fleet file: each error has its line and column, and says what to do.

A row has a part of a right fleet, what stands there instead, and the errors as they are printed, without the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from tests.topology.builders import fleet_file

WRONG = [
    (
        "  home: east\n",
        "  home: eest\n",
        '5:9: spec.home: there is no cluster "eest"; the file has east, west, alpha, lab, laptop',
    ),
    (
        "[us-east-1a, us-east-1b]",
        "[us-east-1a, us-east-1b",
        (
            "19:12: is not valid YAML: expected ',' or ']', but got ':'; close the bracket that is open here, or put "
            "text with special characters in quotes"
        ),
    ),
    (
        '"123456789012"',
        '"123456789012',
        (
            "37:29: is not valid YAML: expected <block end>, but found '<scalar>'; check the indentation of this line, "
            "and the quotes of this and the lines before"
        ),
    ),
    (
        "instanceTypes: [g5.xlarge]\n",
        "instanceTypes: *gpus\n",
        (
            "26:22: is not valid YAML: found undefined alias 'gpus'; put text that begins with '*' in quotes, or "
            "define the anchor before it"
        ),
    ),
    ("kind: Fleet", "kind: fleet", '2:7: kind: is not a fleet file (expected kind: Fleet, got "fleet")'),
    ("metadata: {name: training}\n", "", "1:1: metadata: is required: the fleet's name"),
    (
        "    region: us-east-1\n    zones: [us-east-1a, us-east-1b]",
        "    zones: [us-east-1a, us-east-1b]",
        "15:5: spec.clusters[0].region: is required for cloud aws",
    ),
    (
        "zones: [us-east-1a, us-east-1b]",
        "zones: [us-east-1a]",
        "18:12: spec.clusters[0].zones: has one zone: the EKS control plane needs at least two; add one",
    ),
    (
        "zones: [us-east-1a, us-east-1b]",
        "zones: [us-east-1a, us-west-2b]",
        (
            '18:25: spec.clusters[0].zones[1]: "us-west-2b" is in us-west-2, not in us-east-1: correct the zone or the '
            "region"
        ),
    ),
    (
        "network: {cidr: 10.0.0.0/16}",
        "network: {cidr: 10.0.0.0/33}",
        (
            "21:21: spec.clusters[0].network.cidr: \"10.0.0.0/33\" is not an IPv4 range: '33' is not a valid "
            "netmask; write one like 10.0.0.0/16"
        ),
    ),
    (
        "network: {cidr: 10.0.0.0/16}",
        "network: {cidr: 10.0.0.0/28}",
        (
            "21:21: spec.clusters[0].network.cidr: /28 does not fit an EKS network (expected /16 to /22): choose "
            "another range"
        ),
    ),
    (
        "network: {cidr: 10.1.16.0/20, pods: 10.132.0.0/14}",
        "network: {cidr: 10.1.16.0/20, pods: 10.1.0.0/16}",
        (
            "61:41: spec.clusters[2].network.pods: 10.1.0.0/16 (alpha's pods) overlaps 10.1.0.0/20 (west's nodes): "
            "choose another range\n"
            "61:41: spec.clusters[2].network.pods: 10.1.0.0/16 (alpha's pods) overlaps 10.1.16.0/20 (alpha's "
            "nodes): choose another range"
        ),
    ),
    (
        "    bucket: acme-east\n",
        "    bucket: acme-west\n",
        '20:13: spec.clusters[0].bucket: there is no bucket "acme-west"; did you mean acme-east?',
    ),
    (
        "capacityType: spot\n      instanceTypes: [g5.xlarge]",
        "capacityType: Spot\n      instanceTypes: [g5.xlarge]",
        (
            '25:21: spec.clusters[0].pools[1].capacityType: "Spot" is not one of spot, on-demand, reserved; did you '
            "mean spot?"
        ),
    ),
    (
        "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}",
        "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a100}",
        (
            "26:23: spec.clusters[0].pools[1].instanceTypes[0]: g5.xlarge has nvidia-a10g, not nvidia-a100: correct "
            "one of them"
        ),
    ),
    (
        "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}",
        "instanceTypes: [g5.12xlarge]\n      accelerator: {type: nvidia-a10g, count: 8}",
        (
            "26:23: spec.clusters[0].pools[1].instanceTypes[0]: g5.12xlarge has 4 accelerators, not 8: correct one "
            "of them, or leave out count"
        ),
    ),
    (
        "- {name: east-heads, role: heads, families: [m7i]}\n    ",
        "",
        (
            "23:5: spec.clusters[0].pools: has no pool with role heads: Ray heads find no node; add one with "
            "capacityType on-demand"
        ),
    ),
    (
        "role: heads, families: [m7i]",
        "role: heads, capacityType: spot, families: [m7i]",
        (
            "23:53: spec.clusters[0].pools[0].capacityType: must not be spot for role heads: the loss of a head "
            "ends the attempt; use on-demand"
        ),
    ),
    (
        "{name: g5-on-demand,",
        "{name: g5-spot,",
        (
            '29:14: spec.clusters[0].pools[2].name: "g5-spot" is used twice: the CapacityTiers of all clusters are '
            "in the home cluster; rename one"
        ),
    ),
    (
        "  - name: west\n",
        "  - name: east\n",
        (
            '38:11: spec.clusters[1].name: "east" is used twice; rename one\n'
            '13:31: spec.teams[1].clusters[0]: there is no cluster "west"; did you mean east?'
        ),
    ),
    (
        "      reservation: {capacityBlocks: [cr-0123456789abcdef0]}\n",
        "",
        "30:7: spec.clusters[0].pools[3]: is reserved but names no capacity: specify reservation",
    ),
    (
        "      zones: [us-east-1a]\n      reservation",
        "      reservation",
        (
            "34:12: spec.clusters[0].pools[3].efa: needs one zone, got those of the cluster: set zones\n"
            "35:23: spec.clusters[0].pools[3].placementGroup: needs one zone, got those of the cluster: set zones"
        ),
    ),
    (
        "autoscaler: compute-class\n    bucket",
        'autoscaler: compute-class\n    account: "123456789012"\n    bucket',
        "44:5: spec.clusters[1].account: does not belong to cloud gcp, only to aws: remove it",
    ),
    (
        "limits: {nodes: 16}",
        "limits: {nodes: 0}",
        "28:23: spec.clusters[0].pools[1].limits.nodes: must be at least 1, not 0",
    ),
    (
        "- {name: lab-gpu, selectors: {gpu: a10g}, ",
        "- {name: lab-gpu, instanceTypes: [g5.xlarge], ",
        (
            "70:7: spec.clusters[3].pools[1]: selects no nodes: set selectors (labels of existing nodes) or "
            "nodeClass (Karpenter creates nodes) for cloud existing"
        ),
    ),
    (
        'quota: {accelerators: 64, cpu: "512"}',
        "quota: {accelerators: 64, cpu: lots}",
        '12:65: spec.teams[0].quota.cpu: "lots" is not an amount: write one like 4, 500m or 16Gi',
    ),
    (
        "state: {uri: s3://acme-state/fleet, region: us-east-1}",
        "state: {uri: https://acme-state, region: us-east-1}",
        (
            '6:16: spec.state.uri: "https://acme-state" is not a bucket for state (expected s3://bucket/prefix or '
            "gs://bucket/prefix)"
        ),
    ),
    (
        "name: acme-east, cloud: aws",
        "name: Acme_East, cloud: aws",
        (
            '9:12: spec.buckets[0].name: "Acme_East" is not a bucket name: 3 to 63 lower-case letters, digits, '
            "'-' and '.', without s3:// or gs://"
        ),
    ),
    (
        "limits: {nodes: 16}",
        "disruption: {terminationGracePeriod: 10s}",
        (
            "28:44: spec.clusters[0].pools[1].disruption.terminationGracePeriod: 10s is shorter than the 115s that "
            "pods have to end: Karpenter would delete them at once; set at least 115s or remove it"
        ),
    ),
    (
        "    bucket: acme-east\n",
        "    bucket: acme-east\n    kubernetes: 1.35\n",
        '21:17: spec.clusters[0].kubernetes: must be text: write it in quotes, "1.35"',
    ),
    (
        "    network: {cidr: 10.0.0.0/16}\n",
        "    api: {admins: [admins]}\n",
        (
            '21:20: spec.clusters[0].api.admins[0]: "admins" is not a role or user of IAM (expected '
            "arn:aws:iam::123456789012:role/NAME)"
        ),
    ),
    (
        "    project: acme-ml\n    region: us-central1\n",
        "    project: Acme ML\n    region: us-central1\n",
        (
            '40:14: spec.clusters[1].project: "Acme ML" is not the id of a project (expected one like acme-ml-123): '
            "correct it"
        ),
    ),
    *(
        (
            "{repository: registry.example.com/spotladder}",
            f"{{repository: '{repository}'}}",
            (
                f'81:25: spec.platform.image.repository: "{repository}" is not a repository (expected one like '
                "registry.example.com/spotladder, with the tag in the field tag)"
            ),
        )
        for repository in ("registry.example.com/spotladder:0.1.0", "https://registry.example.com/spotladder")
    ),
    (
        "    bucket: acme-east\n",
        '    bucket: acme-east\n    kubernetes: "1.21"\n',
        (
            "21:17: spec.clusters[0].kubernetes: Kubernetes 1.21 is not supported: choose one of "
            "1.33, 1.34, 1.35, 1.36, 1.37"
        ),
    ),
    (
        "    bucket: acme-east\n",
        "    bucket: acme-central\n",
        (
            "20:13: spec.clusters[0].bucket: is a bucket of gcp: pods of aws have no identity there without a "
            "secret; use a bucket of aws"
        ),
    ),
]


@pytest.mark.parametrize(("old", "new", "errors"), WRONG, ids=[errors[:60] for *_, errors in WRONG])
def test_a_bad_fleet(old: str, new: str, errors: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as refused:
        fleet_file(tmp_path, (old, new))
    assert str(refused.value).replace(f"{tmp_path}/fleet.yaml:", "") == errors
