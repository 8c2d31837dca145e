"""Each rule of a fleet file that test_bad_fleets.py does not have: the field and the beginning of its error or warning.

A row has a part of a right fleet, what stands there instead, and the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from tests.topology.builders import KMS_KEY, PLATFORM, fleet_file, many_teams

EAST_NETWORK = "    network: {cidr: 10.0.0.0/16}\n"
L4 = "{name: l4-on-demand, instanceTypes: [g2-standard-8], accelerator: {type: nvidia-l4}}"
WEST_NETWORK = "    network: {cidr: 10.1.0.0/20}\n"
SHARED = "network: projects/acme-net/global/networks/shared"


def east_in(existing: str, beside: str = "") -> tuple[str, str]:
    """Puts `east` into an existing network."""
    return EAST_NETWORK, f"    network: {{{beside}existing: {{{existing}}}}}\n"


def east_exists(network: str, name: str = "prod") -> tuple[str, str]:
    """Makes `east` an existing cluster."""
    return EAST_NETWORK, f"    existing: {name}\n    network: {{{network}}}\n"


REFUSED = [
    (
        "- {name: team-a,",
        "- {name: team-a, clusters: [east, west, alpha, laptop],",
        "spec.clusters[3]: has no team, so that no job may run there: add it to the clusters of a team, or remove it",
    ),
    (
        "{name: n2-spot, capacityType: spot,",
        "{name: n2-spot, capacityType: spot, placementGroup: near, zones: [us-central1-a],",
        "pools[1].placementGroup: exists on aws, and on gcp with autoscaler compute-class only: remove it",
    ),
    (
        "  - {name: acme-east, cloud: aws, region: us-east-1}",
        f"  - {{name: {'b' * 56}, cloud: aws, region: us-east-1, replicateTo: us-west-2}}",
        "spec.buckets[0].name: has 56 characters (expected at most 55 with replicateTo: the replica is NAME-replica)",
    ),
    ("[us-east-1a, us-east-1b]", "[us-east-1a, us-east-1b, us-east-1a]", "clusters[0].zones[2]: is named twice"),
    ("families: [m7i]", "families: [m7g]", 'pools[0].families[0]: "m7g" has ARM processors, but all nodes are amd64'),
    (
        "    network: {cidr: 10.0.0.0/16}\n",
        "    network: {cidr: 10.0.0.0/16}\n    system: {instanceType: c6gn.xlarge}\n",
        'spec.clusters[0].system.instanceType: "c6gn.xlarge" has ARM processors, but all nodes are amd64',
    ),
    (
        "instanceTypes: [g5.xlarge], accelerator: {type: nvidia-a10g}}",
        "instanceTypes: [g5.xlarge, m7i.large], families: [m7i, m6i]}",
        "pools[2].instanceTypes[0]: g5.xlarge is not of the families m7i, m6i, and Karpenter creates only nodes that",
    ),
    (
        "{name: l4-on-demand, instanceTypes: [g2-standard-8],",
        "{name: l4-on-demand, capacityType: reserved, reservation: {tags: {a: b}}, instanceTypes: [g2-standard-8],",
        "spec.clusters[1].pools[2].reservation.tags: exists on aws only: name the reservations in ids",
    ),
    (
        "context: lab-admin",
        "context: lab-admin\n    serviceAccountAnnotations: {team-x: {a: b}}",
        'spec.clusters[3].serviceAccountAnnotations.team-x: there is no team "team-x"; the file has team-a, team-b',
    ),
    (
        "context: lab-admin",
        "context: lab-admin\n    volumes: [{name: data, teams: [team-x], spec: {nfs: {server: a, path: /}}}]",
        'spec.clusters[3].volumes[0].teams[0]: there is no team "team-x"; the file has team-a, team-b',
    ),
    (
        "context: lab-admin",
        "context: lab-admin\n    volumes: [{name: data, spec: {size: 1Ti}}]",
        "spec.clusters[3].volumes[0].spec: names no file system: add csi or nfs",
    ),
    (*east_in("vpc: vpc-1"), 'spec.clusters[0].network.existing.vpc: "vpc-1" is not the id of a VPC (expected one'),
    (*east_in("vpc: vpc-0123abcd"), "spec.clusters[0].network.existing: needs either subnets or subnetTags"),
    (*east_in("vpc: vpc-0123abcd, subnets: [subnet-0123abcd]"), "spec.clusters[0].network.existing.subnets: has one"),
    (
        *east_in("vpc: vpc-0123abcd, subnets: [subnet-0123abcd, subnet-0123abce], subnetTags: {tier: private}"),
        "spec.clusters[0].network.existing: needs either subnets or subnetTags: specify one of them",
    ),
    (*east_in("subnetTags: {tier: private}"), "spec.clusters[0].network.existing: names no vpc: specify vpc"),
    (
        *east_in("vpc: vpc-0123abcd, subnetTags: {tier: private}, securityGroups: [web]"),
        'spec.clusters[0].network.existing.securityGroups[0]: "web" is not the id of a security group',
    ),
    (*east_in("vpc: vpc-0123abcd, subnetTags: {tier: private}", "nat: none, "), "21:20: spec.clusters[0].network.nat"),
    (WEST_NETWORK, f"    network: {{existing: {{{SHARED}}}}}\n", "spec.clusters[1].network.existing: names no"),
    (*east_exists("existing: {subnetTags: {tier: private}}", '"prod 1"'), 'existing: "prod 1" is not the name of a'),
    (*east_exists("nat: single"), "21:15: spec.clusters[0].existing: needs the subnets of its nodes: specify network"),
    (
        *east_exists("nat: single, existing: {subnetTags: {tier: private}}"),
        "22:20: spec.clusters[0].network.nat: belongs to a network that spotladder creates: remove it",
    ),
    (
        *east_exists("existing: {vpc: vpc-0123abcd, subnetTags: {tier: private}}"),
        "22:31: spec.clusters[0].network.existing.vpc: is that of the existing cluster: remove it",
    ),
    (
        *east_exists("existing: {subnetTags: {tier: private}}", "prod\n    system: {count: 3}"),
        "22:5: spec.clusters[0].system: belongs to a cluster that spotladder creates: remove it, or remove existing",
    ),
    (WEST_NETWORK, f"    existing: prod\n{WEST_NETWORK}", "46:14: spec.clusters[1].network: is that of the existing"),
    ("context: lab-admin", "context: lab-admin\n    existing: prod", "existing: does not belong to cloud existing,"),
    (
        WEST_NETWORK,
        f"    network: {{existing: {{{SHARED}, subnetwork: projects/acme-net/regions/us-east1/subnetworks/gke}}}}\n",
        "spec.clusters[1].network.existing.subnetwork: is not in us-central1: name a subnetwork",
    ),
    (EAST_NETWORK, EAST_NETWORK + "    roles: {path: platform}\n", 'spec.clusters[0].roles.path: "platform" is not a'),
    (
        EAST_NETWORK,
        EAST_NETWORK + "    roles: {permissionsBoundary: developers}\n",
        'spec.clusters[0].roles.permissionsBoundary: "developers" is not a policy of IAM (expected arn:aws:iam::',
    ),
    (EAST_NETWORK, f"{EAST_NETWORK}    kmsKey: {KMS_KEY}\n", "spec.clusters[0].kmsKey: is a key of another cloud"),
    (EAST_NETWORK, f"{EAST_NETWORK}    kmsKey: arn:aws:kms:us-west-2:123456789012:key/1\n", "kmsKey: is in us-west-2"),
    (PLATFORM, "  platform: {mirror: https://registry.example.com}\n", " is not a registry"),
    (*many_teams(80), "spec.teams: with 81 prefixes of teams in 1 buckets the policy of the controller's role has "),
    ("- name: west", "- name: wwwwwwwwwwwwwwwwwwwww", "has 21 characters (expected at most 20 on gcp)"),
    ("cost-center: ml", "spotladder-fleet: x", "has a prefix that is reserved"),
    ("cost-center: ml", "Cost Center: ml", "cannot be a label on gcp"),
    ("cidr: 10.1.0.0/20", "cidr: 10.0.128.0/20", "10.0.128.0/20 (west's nodes) overlaps 10.0.0.0/16 (east's nodes)"),
    ("pods: 10.132.0.0/14", "pods: 10.128.0.0/15", "overlaps 10.128.0.0/14 (west's pods)"),
    ("cidr: 10.0.0.0/16}", "cidr: 10.0.0.0/16, services: 10.0.4.0/22}", "(east's services) overlaps"),
    ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/16, nat: none", "set interfaceEndpoints to true"),
    ("region: us-east-1\n    zones", "region: us-east\n    zones", '"us-east" is not a region of aws'),
    ("[us-east-1a, us-east-1b]", "[us-east-1a, us-east-1z]", '"us-east-1z" does not exist'),
    ("[us-central1-a]", "[us-central1]", '"us-central1" is not a zone of gcp'),
    ("region: us-east-1\n    zones: [us-east-1a, us-east-1b]", "region: ap-east-2", "is not in the table"),
    ("zones: [us-east-1a]", "zones: [us-east-1c]", '"us-east-1c" is not a zone of cluster east'),
    (
        "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}",
        "instanceTypes: [a2-highgpu-1g]\n      accelerator: {type: nvidia-a100-40gb}",
        "a2-highgpu-1g has nvidia-tesla-a100, not nvidia-a100-40gb",
    ),
    ("families: [m7i]", "diskGiB: 100", "names no instances: specify instanceTypes or families"),
    ("families: [m7i]", "families: [m7i.large]", "is an instance type: write it under instanceTypes"),
    ("context: lab-admin", "context: lab-admin\n    network: {nat: none}", "network: does not belong to cloud"),
    ("families: [m7i]", "families: [m7i], selectors: {a: b}", "selects existing nodes"),
    ("{name: g5-on-demand,", "{name: g5-on-demand, reservation: {ids: [cr-1]},", "reservation: needs capacityType"),
    (
        "name: n2-spot, capacityType: spot,",
        "name: n2-spot, capacityType: reserved, reservation: {ids: [a]},",
        "reserved needs autoscaler compute-class",
    ),
    ("name: n2-spot,", "name: n2-spot, efa: true,", "efa: exists on aws only"),
    ("instanceTypes: [p5.48xlarge]", "families: [p5]", "efa: needs instanceTypes: the number of interfaces depends"),
    ("efa: true", "flexStart: true", "flexStart: is for on-demand workers only: remove it"),
    ("{name: g5-on-demand, ", "{name: g5-on-demand, flexStart: true, ", "flexStart: exists on gcp with autoscaler"),
    (
        "families: [n2]}\n    - {name: n2-spot",
        "flexStart: true, families: [n2]}\n    - {name: n2-spot",
        "flexStart: is for",
    ),
    ("efa: true", "secondaryBootDisk: projects/acme-ml/global/images/train", "secondaryBootDisk: exists on gcp only"),
    ("{name: n2-spot,", "{name: n2-spot, secondaryBootDisk: train,", '"train" is not a disk image (expected'),
    (
        "families: [m7i]",
        "families: [m7i], nodeClass: {group: a, kind: B, name: c}",
        "nodeClass: is only for clouds existing",
    ),
    ("selectors: {gpu: a10g}", "selectors: {gpu: a10g}, nodeClass: {group: a, kind: B, name: c}", "selectors: selects"),
    ("selectors: {gpu: a10g}", "nodeClass: {group: a, kind: B, name: c}, families: [g5]", "families: does not belong"),
    ("efa: true", "diskThroughput: 100", "diskThroughput: must be at least 125"),
    ("cloud: aws\n    region", "cloud: aws\n    autoscaler: compute-class\n    region", "compute-class exists on gcp"),
    (
        "cloud: aws, region: us-east-1}",
        "cloud: aws, region: us-east-1, replicateTo: us-east-1}",
        "must be another region",
    ),
    (
        "cloud: gcp, region: us-central1}",
        "cloud: gcp, region: us-central1, replicateTo: us-east1}",
        "exists on aws only",
    ),
    (
        "cloud: aws, region: us-east-1}",
        "cloud: aws, region: us-east-1, replicateTo: us-central1}",
        'spec.buckets[0].replicateTo: "us-central1" is not a region of aws: buckets are not replicated to another',
    ),
    (
        "cloud: aws, region: us-east-1}",
        f"cloud: aws, region: us-east-1, kmsKey: {KMS_KEY}}}",
        "spec.buckets[0].kmsKey: is a key of another cloud: name a key of aws",
    ),
    (
        "cloud: gcp, region: us-central1}",
        "cloud: gcp, region: us-central1, kmsKey: checkpoints}",
        '"checkpoints" is not a key (expected projects/PROJECT/locations/LOCATION/keyRings/',
    ),
    (
        "cloud: gcp, region: us-central1}",
        f"cloud: gcp, region: us-central1, kmsKey: {KMS_KEY.replace('central', 'east')}}}",
        "spec.buckets[1].kmsKey: is in us-east1: the bucket needs a key in us-central1; choose one",
    ),
    ("fleet, region: us-east-1}", "fleet}", "spec.state.region: is required for s3"),
    ("    bucket: acme-east\n", "    buket: acme-east\n", "did you mean bucket?"),
    ("region: us-east-1\n    zones: [us-east-1a, us-east-1b]", "region: us-eastt-1", "; did you mean us-east-1?"),
    ('"123456789012"', '"12345"', '19:14: spec.clusters[0].account: "12345" is not an account id of AWS'),
    ("name: team-a", "name: kube-system", 'spec.teams[0].name: "kube-system" is a namespace of Kubernetes'),
    ("    network: {cidr: 10.0.0.0/16}", "    api: {allowed: [192.168.0.0/16]}", "allowed[0]: 192.168.0.0/16 is"),
    ("instanceTypes: [g5.xlarge]", "instanceTypes: [g5.xlrge]", '"g5.xlrge" is not an instance type of aws (expected'),
    (
        "{cidr: 10.0.0.0/16}",
        "{cidr: 10.0.0.0/16}\n    system: {instanceType: m7i.lage}",
        'spec.clusters[0].system.instanceType: "m7i.lage" is not an instance type of aws',
    ),
    ("fleet, region: us-east-1}", "fleet, region: useast1}", 'spec.state.region: "useast1" is not a region of aws'),
    ("instanceTypes: [g2-standard-8]", "instanceTypes: [g5.xlarge]", '"g5.xlarge" is not an instance type of gcp'),
    ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023,", 'pools[2].image: "al2023" is not an image of EKS'),
    ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@v20261345,", '"al2023@v20261345" is not an image of'),
    (
        "{name: l4-on-demand,",
        "{name: l4-on-demand, taints: [{key: node.kubernetes.io/own, value: x}],",
        'spec.clusters[1].pools[2].taints[0].key: "node.kubernetes.io/own" has a part that GKE reserves',
    ),
    ("{name: l4-on-demand,", '{name: l4-on-demand, taints: [{key: own, value: "no"}],', 'taints[0].value: "no" is not'),
    ("{name: l4-on-demand,", "{name: l4-on-demand, disruption: {consolidateAfter: 25h},", "consolidateAfter: 25h is"),
    *(
        (L4, f"{{name: l4-on-demand, {pool}}}", f"spec.clusters[1].pools[2]{expected}")
        for pool, expected in (
            ("instanceTypes: [ct5lp-hightpu-4t]", ": ct5lp-hightpu-4t has TPUs: set tpuTopology, as in 2x4 or 2x2x4"),
            ("instanceTypes: [ct5lp-hightpu-4t], tpuTopology: 2-4", '.tpuTopology: "2-4" is not a topology of TPUs'),
            (
                "instanceTypes: [ct5lp-hightpu-4t], tpuTopology: 2x2x1",
                ".tpuTopology: of tpu-v5-lite-podslice has 2 dimensions, not 3: correct it",
            ),
            (
                "instanceTypes: [ct5lp-hightpu-8t], tpuTopology: 2x2",
                ".tpuTopology: has 4 TPUs, which machines with 8 (ct5lp-hightpu-8t) cannot form: correct one of them",
            ),
            (
                "instanceTypes: [g2-standard-8], tpuTopology: 2x2",
                ".tpuTopology: needs instanceTypes with TPUs of one kind, such as ct5lp-hightpu-4t: correct",
            ),
            ("families: [ct6e], tpuTopology: 2x2", ".tpuTopology: needs instanceTypes with TPUs of one kind"),
        )
    ),
    (
        "families: [n2], price",
        "instanceTypes: [ct5lp-hightpu-4t], price",
        "spec.clusters[2].pools[1]: ct5lp-hightpu-4t has TPUs: set autoscaler: compute-class and tpuTopology, as in",
    ),
    ("efa: true", "tpuTopology: 2x2", "spec.clusters[0].pools[3].tpuTopology: exists on gcp with autoscaler"),
    (
        WEST_NETWORK,
        "    existing: us-east1-b/prod\n",
        'spec.clusters[1].existing: "us-east1-b" is not a zone of gcp in region us-central1: name the cluster alone',
    ),
    (*east_exists("existing: {subnetTags: {a: b}}", "us-east-1a/prod"), 'existing: "us-east-1a" is not a zone of gcp'),
]

WARNED = [
    (
        "role: heads, families: [m7i]",
        "role: heads, families: [m7i], taints: [{key: own}]",
        "spec.clusters[0].pools[0].taints: are not tolerated by Ray heads: remove them, or add the tolerations to the",
    ),
    (PLATFORM, "", "spec.buckets[1]: is in gcp, where the controller in east has no identity: create a Secret"),
    ("fleet, region: us-east-1}", "fleet, region: us-eastt-1}", 'spec.state.region: "us-eastt-1" is not in the table'),
    (
        "cloud: aws, region: us-east-1",
        "cloud: aws, region: us-east-1, replicateTo: us-wst-2",
        'spec.buckets[0].replicateTo: "us-wst-2" is not in the table of regions of 2026-11-22; did you mean',
    ),
    ("instanceTypes: [g2-standard-8]", "instanceTypes: [g2-standrd-8]", "g2-standard-96): did you mean g2-standard-8?"),
    ("context: lab-admin", "context: lab-admin\n    bucket: acme-east", "spec.clusters[3].bucket: has no effect for"),
    ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/16, nat: none, interfaceEndpoints: true", "nat: leaves the nodes without"),
    ("cidr: 10.1.0.0/20", "cidr: 10.1.0.0/20, nat: none", "spec.clusters[1].network.nat: leaves the nodes without"),
    ("home: east", "home: west", "spec.clusters[0].api.allowed: is empty: the controller in west reaches this API"),
    ("- {name: team-a,", "- {name: team-a, groups: [ml],", "spec.teams[0].groups: are empty on EKS: name the team's"),
    (
        "    zones: [us-east-1a, us-east-1b]\n",
        '    zones: [us-east-1a, us-east-1b]\n    kubernetes: "1.41"\n',
        "spec.clusters[0].kubernetes: Kubernetes 1.41 is newer than the tested versions 1.33, 1.34, 1.35, 1.36, 1.37",
    ),
    ("    network: {cidr: 10.0.0.0/16}", "    api: {allowed: [0.0.0.0/0]}", "opens the API server to the whole"),
    (
        "cidr: 10.0.0.0/16}",
        (
            "cidr: 10.0.0.0/16, nat: none, interfaceEndpoints: true}\n"
            "    addons: {amazon-cloudwatch-observability: v6.2.0-eksbuild.1}"
        ),
        "addons.amazon-cloudwatch-observability: does not reach CloudWatch with nat none",
    ),
    (
        "name: acme-east, cloud: aws, region: us-east-1",
        "name: acme-east, cloud: aws, region: us-west-2",
        "is in us-west-2, the cluster in us-east-1: 1000 GiB a month cost about $20/month",
    ),
    ("    bucket: acme-east\n", "", "has no bucket: jobs on it cannot write checkpoints"),
    ("    image: {repository: registry.example.com/spotladder}\n", "", "has no platform.image"),
    ("  state: {uri: s3://acme-state/fleet, region: us-east-1}\n", "", "has no state"),
    ("      limits: {nodes: 16}", "      disruption: {terminationGracePeriod: 10m}", "10m is longer than the notice"),
    ("      limits: {nodes: 16}", "      disruption: {consolidateAfter: 30s}", "30s is shorter than a restart of a"),
    (
        "{name: l4-on-demand,",
        "{name: l4-on-demand, startupTaints: [{key: own, value: x}],",
        "spec.clusters[1].pools[2].startupTaints: has no effect with autoscaler compute-class",
    ),
    ("{name: l4-on-demand,", "{name: l4-on-demand, limits: {cpu: 64},", "spec.clusters[1].pools[2].limits.cpu: has no"),
    ("      placementGroup: training\n", "", "pools[3].efa: without placementGroup"),
    ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@latest,", "pools[2].image: is not pinned"),
    ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@v20260101,", "pools[2].image: is al2023@v20260101"),
    ('      price: {perNodeHour: "31.46"}\n', "", "has no price: its costs will be reported as unknown"),
]


@pytest.mark.parametrize(("old", "new", "expected"), REFUSED, ids=[text for *_, text in REFUSED])
def test_refused(old: str, new: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as error:
        fleet_file(tmp_path, (old, new))
    assert expected in str(error.value)
    assert all(line.startswith(f"{tmp_path}/fleet.yaml:") for line in str(error.value).splitlines())


@pytest.mark.parametrize(("old", "new", "expected"), WARNED, ids=[text for *_, text in WARNED])
def test_warned(old: str, new: str, expected: str, tmp_path: Path) -> None:
    found = [str(problem) for problem in fleet_file(tmp_path, (old, new)).warnings]
    assert [text for text in found if expected in text], found
