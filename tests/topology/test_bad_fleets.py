"""Mistakes of first users of a fleet file: each error has its line and column, and says what to do.

A row has a part of a right fleet, what stands there instead, and the beginnings of the errors, without the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from tests.topology.builders import fleet_file

WRONG: list[tuple[str, ...]] = [
    ("  home: east\n", "  home: eest\n", '5:9: spec.home: there is no cluster "eest"; the file has east, west,'),
    ("  home: east\n", "  home east\n", "6:8: is not valid YAML: mapping values are not allowed here; check the"),
    ("  - name: east\n", "\t- name: east\n", "15:1: a tab is not allowed here: use spaces"),
    ("    region: us-east-1\n", "    region:\tus-east-1\n", "17:12: a tab is not allowed here: use spaces"),
    ("[us-east-1a, us-east-1b]", "[us-east-1a, us-east-1b", "19:12: is not valid YAML: expected ',' or ']', but"),
    ('"123456789012"', '"123456789012', "37:29: is not valid YAML: expected <block end>, but found '<scalar>';"),
    ("instanceTypes: [g5.xlarge]\n", "instanceTypes: *gpus\n", "26:22: is not valid YAML: found undefined alias"),
    ("kind: Fleet", "kind: fleet", '2:7: kind: is not a fleet file (expected kind: Fleet, got "fleet")'),
    (
        "apiVersion: spotladder.io/v1alpha1\n",
        "apiVersion: spotladder.io/v1\n",
        '1:13: apiVersion: must be spotladder.io/v1alpha1, not "spotladder.io/v1"',
    ),
    ("metadata: {name: training}\n", "", "1:1: metadata: is required: the fleet's name"),
    (
        "metadata: {name: training}",
        "metadata: {name: Training_1}",
        "3:18: metadata.name: \"Training_1\" is not a valid name: use lower-case letters, digits and '-', no",
    ),
    (
        "    region: us-east-1\n    zones: [us-east-1a, us-east-1b]",
        "    zones: [us-east-1a, us-east-1b]",
        "15:5: spec.clusters[0].region: is required for cloud aws",
    ),
    ("zones: [us-east-1a, us-east-1b]", "zones: [us-east-1a]", "18:12: spec.clusters[0].zones: has one zone: the"),
    (
        "zones: [us-east-1a, us-east-1b]",
        "zones: [us-east-1a, us-west-2b]",
        '18:25: spec.clusters[0].zones[1]: "us-west-2b" is in us-west-2, not in us-east-1: choose a zone of',
    ),
    (
        "network: {cidr: 10.0.0.0/16}",
        "network: {cidr: 10.0.0.0/33}",
        "21:21: spec.clusters[0].network.cidr: \"10.0.0.0/33\" is not an IPv4 range: '33' is not a valid",
    ),
    (
        "network: {cidr: 10.0.0.0/16}",
        "network: {cidr: 10.0.0.0/28}",
        "21:21: spec.clusters[0].network.cidr: /28 does not fit an EKS network (expected /16 to /22): choose",
    ),
    (
        "network: {cidr: 10.1.16.0/20, pods: 10.132.0.0/14}",
        "network: {cidr: 10.1.16.0/20, pods: 10.1.0.0/16}",
        "61:41: spec.clusters[2].network.pods: 10.1.0.0/16 (alpha's pods) overlaps 10.1.0.0/20 (west's",
        "61:41: spec.clusters[2].network.pods: 10.1.0.0/16 (alpha's pods) overlaps 10.1.16.0/20 (alpha's",
    ),
    ("    bucket: acme-east\n", "    bucket: acme-west\n", "20:13: spec.clusters[0].bucket: there is no bucket"),
    (
        "capacityType: spot\n      instanceTypes: [g5.xlarge]",
        "capacityType: Spot\n      instanceTypes: [g5.xlarge]",
        '25:21: spec.clusters[0].pools[1].capacityType: "Spot" is not one of spot, on-demand, reserved; did',
    ),
    (
        "instanceTypes: [g5.xlarge]\n",
        "instanceTypes: g5.xlarge\n",
        '26:22: spec.clusters[0].pools[1].instanceTypes: must be a list: lines that begin with "- "',
    ),
    (
        "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}",
        "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a100}",
        "26:23: spec.clusters[0].pools[1].instanceTypes[0]: g5.xlarge has nvidia-a10g, not nvidia-a100:",
    ),
    (
        "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}",
        "instanceTypes: [g5.12xlarge]\n      accelerator: {type: nvidia-a10g, count: 8}",
        "26:23: spec.clusters[0].pools[1].instanceTypes[0]: g5.12xlarge has 4 accelerators, not 8: correct",
    ),
    (
        "- {name: east-heads, role: heads, families: [m7i]}\n    ",
        "",
        "23:5: spec.clusters[0].pools: has no pool with role heads: Ray heads find no node; add one with",
    ),
    (
        "role: heads, families: [m7i]",
        "role: heads, capacityType: spot, families: [m7i]",
        "23:53: spec.clusters[0].pools[0].capacityType: must not be spot for role heads: the loss of a head",
    ),
    ("{name: g5-on-demand,", "{name: g5-spot,", '29:14: spec.clusters[0].pools[2].name: "g5-spot" is used twice:'),
    (
        "  - name: west\n",
        "  - name: east\n",
        '38:11: spec.clusters[1].name: "east" is used twice; rename one',
        '13:31: spec.teams[1].clusters[0]: there is no cluster "west"; did you mean east?',
    ),
    (
        "      reservation: {capacityBlocks: [cr-0123456789abcdef0]}\n",
        "",
        "30:7: spec.clusters[0].pools[3]: is reserved but names no capacity: specify reservation",
    ),
    (
        "      zones: [us-east-1a]\n      reservation",
        "      reservation",
        "34:12: spec.clusters[0].pools[3].efa: needs one zone, got those of the cluster: set zones",
        "35:23: spec.clusters[0].pools[3].placementGroup: needs one zone, got those of the cluster: set zones",
    ),
    (
        "autoscaler: compute-class\n    bucket",
        'autoscaler: compute-class\n    account: "123456789012"\n    bucket',
        "44:5: spec.clusters[1].account: does not belong to cloud gcp, only to aws: remove it",
    ),
    ("limits: {nodes: 16}", "limits: {nodes: 0}", "28:23: spec.clusters[0].pools[1].limits.nodes: must be at least"),
    ("limits: {nodes: 16}", "limits: {gpus: 16}", "28:16: spec.clusters[0].pools[1].limits.gpus: is not a known"),
    ('perNodeHour: "31.46"', "perNodeHour: -3", "37:28: spec.clusters[0].pools[3].price.perNodeHour: must not be"),
    ('perNodeHour: "31.46"', "perNodeHour: $31", "37:28: spec.clusters[0].pools[3].price.perNodeHour: must be a"),
    (
        "- {name: lab-gpu, selectors: {gpu: a10g}, ",
        "- {name: lab-gpu, instanceTypes: [g5.xlarge], ",
        "70:7: spec.clusters[3].pools[1]: selects no nodes: set selectors (labels of existing nodes) or",
    ),
    (
        'quota: {accelerators: 64, cpu: "512"}',
        "quota: {accelerators: 64, cpu: lots}",
        '12:65: spec.teams[0].quota.cpu: "lots" is not an amount: write one like 4, 500m or 16Gi',
    ),
    ("notice: 30s", "notice: 30 seconds", '78:15: spec.clusters[4].pools[1].notice: "30 seconds" is not a'),
    (
        "state: {uri: s3://acme-state/fleet, region: us-east-1}",
        "state: {uri: https://acme-state, region: us-east-1}",
        '6:16: spec.state.uri: "https://acme-state" is not a bucket for state (expected s3://bucket/prefix',
    ),
    (
        "name: acme-east, cloud: aws",
        "name: Acme_East, cloud: aws",
        '9:12: spec.buckets[0].name: "Acme_East" is not a bucket name: 3 to 63 lower-case letters, digits,',
    ),
    (
        "limits: {nodes: 16}",
        "disruption: {terminationGracePeriod: 10s}",
        "28:44: spec.clusters[0].pools[1].disruption.terminationGracePeriod: 10s is shorter than the 115s",
    ),
    (
        "    bucket: acme-east\n",
        "    bucket: acme-east\n    kubernetes: 1.35\n",
        '21:17: spec.clusters[0].kubernetes: must be text: write it in quotes, "1.35"',
    ),
    (
        "    network: {cidr: 10.0.0.0/16}\n",
        "    api: {admins: [admins]}\n",
        '21:20: spec.clusters[0].api.admins[0]: "admins" is not a role or user of IAM (expected',
    ),
    (
        "    project: acme-ml\n    region: us-central1\n",
        "    project: Acme ML\n    region: us-central1\n",
        '40:14: spec.clusters[1].project: "Acme ML" is not the id of a project (expected one like',
    ),
    (
        "{repository: registry.example.com/spotladder}",
        "{repository: 'registry.example.com/spotladder:0.1.0'}",
        '81:25: spec.platform.image.repository: "registry.example.com/spotladder:0.1.0" is not a repository',
    ),
    (
        "{repository: registry.example.com/spotladder}",
        "{repository: 'https://registry.example.com/spotladder'}",
        '81:25: spec.platform.image.repository: "https://registry.example.com/spotladder" is not a',
    ),
    (
        "    bucket: acme-east\n",
        '    bucket: acme-east\n    kubernetes: "1.21"\n',
        "21:17: spec.clusters[0].kubernetes: Kubernetes 1.21 is not supported: choose one of 1.33, 1.34,",
    ),
    ("    bucket: acme-east\n", "    bucket: acme-central\n", "20:13: spec.clusters[0].bucket: is a bucket of gcp:"),
]


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [pytest.param(old, new, errors, id=errors[0]) for old, new, *errors in WRONG],
)
def test_a_bad_fleet(old: str, new: str, errors: list[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as refused:
        fleet_file(tmp_path, (old, new))
    lines = str(refused.value).replace(f"{tmp_path}/fleet.yaml:", "").splitlines()
    assert [line[: len(error)] for line, error in zip(lines, errors, strict=True)] == errors
