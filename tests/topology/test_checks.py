"""Each rule of a fleet file: its errors and warnings, with line, column and remedy."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder_infra.facts import images, regions, sizes
from spotladder_infra.topology.checks import CHECKS
from tests.topology.builders import KMS_KEY, PLATFORM, fleet_file

TEAMS = "  - {name: team-b, clusters: [west]}\n"


def many_teams(count: int) -> tuple[str, str]:
    """More teams, with a namespace in every cluster."""
    return TEAMS, "".join(f"  - {{name: research-{number:03}}}\n" for number in range(count))


REFUSED = {
    "too many teams for a role of AWS": (
        many_teams(80),
        "spec.teams: with 81 prefixes of teams in 1 buckets the policy of the controller's role has ",
    ),
    "cluster twice": (("name: alpha\n", "name: west\n"), 'spec.clusters[2].name: "west" is used twice'),
    "pool twice": (("name: l4-spot", "name: g5-spot"), 'spec.clusters[1].pools[1].name: "g5-spot" is used twice'),
    "team twice": (("name: team-b", "name: team-a"), 'fleet.yaml:13:12: spec.teams[1].name: "team-a" is used twice'),
    "home is no cluster": (
        ("home: east", "home: eastt"),
        'fleet.yaml:5:9: spec.home: there is no cluster "eastt"; did you mean east?',
    ),
    "team's cluster": (
        ("[west]", "[nowhere]"),
        'fleet.yaml:13:31: spec.teams[1].clusters[0]: there is no cluster "nowhere"',
    ),
    "bucket unknown": (
        ("bucket: acme-east", "bucket: acme-esat"),
        'spec.clusters[0].bucket: there is no bucket "acme-esat"',
    ),
    "bucket of another cloud": (("bucket: acme-central", "bucket: acme-east"), "is a bucket of aws: pods of gcp"),
    "name too long": (("- name: west", f"- name: {'w' * 21}"), "has 21 characters (expected at most 20 on gcp)"),
    "reserved tag": (("cost-center: ml", "spotladder-fleet: x"), "has a prefix that is reserved"),
    "tag no label": (("cost-center: ml", "Cost Center: ml"), "cannot be a label on gcp"),
    "nodes overlap": (
        ("cidr: 10.1.0.0/20", "cidr: 10.0.128.0/20"),
        "10.0.128.0/20 (west's nodes) overlaps 10.0.0.0/16 (east's nodes)",
    ),
    "pods overlap": (("pods: 10.132.0.0/14", "pods: 10.128.0.0/15"), "overlaps 10.128.0.0/14 (west's pods)"),
    "services overlap": (
        ("cidr: 10.0.0.0/16}", "cidr: 10.0.0.0/16, services: 10.0.4.0/22}"),
        "(east's services) overlaps",
    ),
    "network too small": (
        ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/24"),
        "/24 does not fit an EKS network (expected /16 to /22)",
    ),
    "not a range": (("cidr: 10.0.0.0/16", "cidr: 10.0.0.1/16"), "is not an IPv4 range"),
    "no route to AWS": (("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/16, nat: none"), "set interfaceEndpoints to true"),
    "not a region": (
        ("region: us-east-1\n    zones", "region: us-east\n    zones"),
        '"us-east" is not a region of aws',
    ),
    "zone elsewhere": (
        ("[us-east-1a, us-east-1b]", "[us-east-1a, us-west-2b]"),
        '"us-west-2b" is in us-west-2, not in us-east-1',
    ),
    "no such zone": (("[us-east-1a, us-east-1b]", "[us-east-1a, us-east-1z]"), '"us-east-1z" does not exist'),
    "not a zone": (("[us-central1-a]", "[us-central1]"), '"us-central1" is not a zone of gcp'),
    "one zone on EKS": (
        ("[us-east-1a, us-east-1b]", "[us-east-1a]"),
        "has one zone: the EKS control plane needs at least two",
    ),
    "unknown region, no zones": (
        ("region: us-east-1\n    zones: [us-east-1a, us-east-1b]", "region: ap-east-2"),
        'spec.clusters[0].region: "ap-east-2" is not in the table of regions',
    ),
    "pool's zone": (("zones: [us-east-1a]", "zones: [us-east-1c]"), '"us-east-1c" is not a zone of cluster east'),
    "accelerator": (
        ("accelerator: {type: nvidia-a10g}", "accelerator: {type: nvidia-l4}"),
        "g5.xlarge has nvidia-a10g, not nvidia-l4",
    ),
    "number of accelerators": (
        (
            "instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}",
            "instanceTypes: [g6.12xlarge]\n      accelerator: {type: nvidia-l4, count: 8}",
        ),
        "spec.clusters[0].pools[1].instanceTypes[0]: g6.12xlarge has 4 accelerators, not 8",
    ),
    "accelerator by a name that Google does not have": (
        (
            "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}",
            "instanceTypes: [a2-highgpu-1g]\n      accelerator: {type: nvidia-a100-40gb}",
        ),
        "a2-highgpu-1g has nvidia-tesla-a100, not nvidia-a100-40gb",
    ),
    "not an IAM role": (
        ("- {name: team-a,", "- {name: team-a, iamPrincipals: [admins],"),
        'spec.teams[0].iamPrincipals[0]: "admins" is not a role or user of IAM',
    ),
    "Kubernetes too old": (
        ("cloud: aws\n    region", 'cloud: aws\n    kubernetes: "1.25"\n    region'),
        "Kubernetes 1.25 is not supported",
    ),
    "version without quotes": (
        ("cloud: aws\n    region", "cloud: aws\n    kubernetes: 1.35\n    region"),
        "must be text: write it in quotes",
    ),
    "no heads": (("role: heads, families: [m7i]", "families: [m7i]"), "has no pool with role heads"),
    "heads on spot": (
        ("role: heads, families: [m7i]", "role: heads, capacityType: spot, families: [m7i]"),
        "spec.clusters[0].pools[0].capacityType: must not be spot for role heads",
    ),
    "grace shorter than the pods'": (
        ("      limits: {nodes: 16}", "      disruption: {terminationGracePeriod: 60s}"),
        "1m is shorter than the 115s that pods have to end",
    ),
    "no instances": (("families: [m7i]", "diskGiB: 100"), "names no instances: specify instanceTypes or families"),
    "families and types": (
        ("families: [m7i]", "families: [m7i.large]"),
        "is an instance type: write it under instanceTypes",
    ),
    "no project": (("    project: acme-ml\n", ""), "spec.clusters[1].project: is required for cloud gcp"),
    "no context": (("    context: lab-admin\n", ""), "spec.clusters[3].context: is required for cloud existing"),
    "network on existing": (
        ("context: lab-admin", "context: lab-admin\n    network: {nat: none}"),
        "network: does not belong to cloud existing",
    ),
    "no selectors": (
        ("{name: lab-gpu, selectors: {gpu: a10g},", "{name: lab-gpu,"),
        "selects no nodes: set selectors",
    ),
    "selectors on aws": (("families: [m7i]", "families: [m7i], selectors: {a: b}"), "selects existing nodes"),
    "reserved without capacity": (
        ("      reservation: {capacityBlocks: [cr-0123456789abcdef0]}\n", ""),
        "is reserved but names no capacity",
    ),
    "reservation on demand": (
        ("{name: g5-on-demand,", "{name: g5-on-demand, reservation: {ids: [cr-1]},"),
        "reservation: needs capacityType reserved",
    ),
    "reserved with Karpenter on gcp": (
        ("name: n2-spot, capacityType: spot,", "name: n2-spot, capacityType: reserved, reservation: {ids: [a]},"),
        "reserved needs autoscaler compute-class",
    ),
    "EFA on gcp": (("name: n2-spot,", "name: n2-spot, efa: true,"), "efa: exists on aws only"),
    "EFA in several zones": (("      zones: [us-east-1a]\n", ""), "efa: needs one zone, got those of the cluster"),
    "placement group in several zones": (
        (
            "capacityType: spot\n      instanceTypes: [g2",
            "capacityType: spot\n      placementGroup: p\n      instanceTypes: [g2",
        ),
        "placementGroup: needs one zone, got those of the cluster",
    ),
    "EFA by family": (
        ("instanceTypes: [p5.48xlarge]", "families: [p5]"),
        "efa: needs instanceTypes: the number of interfaces depends on the type",
    ),
    "secondary boot disk on aws": (
        ("efa: true", "secondaryBootDisk: projects/acme-ml/global/images/train"),
        "secondaryBootDisk: exists on gcp only",
    ),
    "secondary boot disk is a name": (
        ("{name: n2-spot,", "{name: n2-spot, secondaryBootDisk: train,"),
        '"train" is not a disk image (expected projects/PROJECT/global/images/NAME)',
    ),
    "node class on aws": (
        ("families: [m7i]", "families: [m7i], nodeClass: {group: a, kind: B, name: c}"),
        "nodeClass: belongs to existing and kind",
    ),
    "node class and selectors": (
        ("selectors: {gpu: a10g}", "selectors: {gpu: a10g}, nodeClass: {group: a, kind: B, name: c}"),
        "selectors: selects existing nodes, and nodeClass creates nodes",
    ),
    "families of an existing cluster": (
        ("selectors: {gpu: a10g}", "nodeClass: {group: a, kind: B, name: c}, families: [g5]"),
        "families: does not belong to cloud existing: use instanceTypes",
    ),
    "disk too slow": (("efa: true", "diskThroughput: 100"), "diskThroughput: must be at least 125"),
    "compute-class on aws": (
        ("cloud: aws\n    region", "cloud: aws\n    autoscaler: compute-class\n    region"),
        "compute-class exists on gcp only",
    ),
    "bucket is a URI": (("{name: acme-east,", "{name: s3://acme-east,"), "is not a bucket name"),
    "replica in its own region": (
        ("cloud: aws, region: us-east-1}", "cloud: aws, region: us-east-1, replicateTo: us-east-1}"),
        "must be another region",
    ),
    "replica on gcp": (
        ("cloud: gcp, region: us-central1}", "cloud: gcp, region: us-central1, replicateTo: us-east1}"),
        "exists on aws only",
    ),
    "replica in another cloud": (
        ("cloud: aws, region: us-east-1}", "cloud: aws, region: us-east-1, replicateTo: us-central1}"),
        'spec.buckets[0].replicateTo: "us-central1" is not a region of aws: buckets are not replicated to another',
    ),
    "key on aws": (
        ("cloud: aws, region: us-east-1}", f"cloud: aws, region: us-east-1, kmsKey: {KMS_KEY}}}"),
        "spec.buckets[0].kmsKey: exists on gcp only",
    ),
    "key without its path": (
        ("cloud: gcp, region: us-central1}", "cloud: gcp, region: us-central1, kmsKey: checkpoints}"),
        '"checkpoints" is not a key of Cloud KMS (expected projects/PROJECT/locations/LOCATION/keyRings/',
    ),
    "key in another location": (
        (
            "cloud: gcp, region: us-central1}",
            f"cloud: gcp, region: us-central1, kmsKey: {KMS_KEY.replace('central', 'east')}}}",
        ),
        "spec.buckets[1].kmsKey: is in us-east1: Cloud Storage needs a key in us-central1",
    ),
    "state without a region": (("fleet, region: us-east-1}", "fleet}"), "spec.state.region: is required for s3"),
    "state is no bucket": (("uri: s3://acme-state/fleet", "uri: ./state"), "is not a bucket for state"),
    "misspelt field": (("    bucket: acme-east\n", "    buket: acme-east\n"), "did you mean bucket?"),
    "misspelt choice": (("cloud: kind", "cloud: kint"), "did you mean kind?"),
    "another kind": (("kind: Fleet", "kind: TieredJob"), "2:7: kind: is not a fleet file (expected kind: Fleet, got"),
    "region misspelt": (
        ("region: us-east-1\n    zones: [us-east-1a, us-east-1b]", "region: us-eastt-1"),
        'spec.clusters[0].region: "us-eastt-1" is not in the table of regions of 2026-11-22; did you mean us-east-1?',
    ),
    "account": (('"123456789012"', '"12345"'), '19:14: spec.clusters[0].account: "12345" is not an account id of AWS'),
    "namespace of the cluster's own": (
        ("name: team-a", "name: kube-system"),
        'spec.teams[0].name: "kube-system" is a namespace of Kubernetes',
    ),
    "private range for the API server": (
        ("    network: {cidr: 10.0.0.0/16}", "    api: {allowed: [192.168.0.0/16]}"),
        "allowed[0]: 192.168.0.0/16 is private: EKS accepts public ranges only",
    ),
    "instance type of another cloud": (
        ("instanceTypes: [g5.xlarge]", "instanceTypes: [g2-standard-8]"),
        'instanceTypes[0]: "g2-standard-8" is not an instance type of aws (expected one like g5.xlarge)',
    ),
    "misspelt size": (
        ("instanceTypes: [g5.xlarge]", "instanceTypes: [g5.xlrge]"),
        '"g5.xlrge" is not an instance type of aws (expected one like g5.xlarge): did you mean g5.xlarge?',
    ),
    "misspelt size of the system nodes": (
        ("{cidr: 10.0.0.0/16}", "{cidr: 10.0.0.0/16}\n    system: {instanceType: m7i.lage}"),
        'spec.clusters[0].system.instanceType: "m7i.lage" is not an instance type of aws',
    ),
    "region of the state": (
        ("fleet, region: us-east-1}", "fleet, region: useast1}"),
        'spec.state.region: "useast1" is not a region of aws (expected one like us-east-1): did you mean us-east-1?',
    ),
    "region of a bucket": (
        ("name: acme-east, cloud: aws, region: us-east-1", "name: acme-east, cloud: aws, region: us-central1"),
        'spec.buckets[0].region: "us-central1" is not a region of aws',
    ),
    "instance type of another cloud on gcp": (
        ("instanceTypes: [g2-standard-8]", "instanceTypes: [g5.xlarge]"),
        '"g5.xlarge" is not an instance type of gcp (expected one like g2-standard-8)',
    ),
    "a number in words": (
        ("limits: {nodes: 16}", "limits: {nodes: many}"),
        'limits.nodes: must be a whole number, not "many"',
    ),
    "image without a release": (
        ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023,"),
        'pools[2].image: "al2023" is not an image of EKS (expected one like al2023@v',
    ),
    "image of a day that does not exist": (
        ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@v20261345,"),
        '"al2023@v20261345" is not an image of EKS',
    ),
    "taint key that GKE reserves": (
        ("{name: l4-on-demand,", "{name: l4-on-demand, taints: [{key: node.kubernetes.io/own, value: x}],"),
        'spec.clusters[1].pools[2].taints[0].key: "node.kubernetes.io/own" has a part that GKE reserves',
    ),
    "taint value that a ComputeClass does not accept": (
        ("{name: l4-on-demand,", '{name: l4-on-demand, taints: [{key: own, value: "no"}],'),
        'taints[0].value: "no" is not a valid value of a taint of a ComputeClass (expected one character, or three to',
    ),
    "consolidation after more than a day on GKE": (
        ("{name: l4-on-demand,", "{name: l4-on-demand, disruption: {consolidateAfter: 25h},"),
        "consolidateAfter: 25h is longer than a ComputeClass can wait: set at most 24h",
    ),
    "a name for nothing": (("name: west-heads", "name: West_Heads"), 'for example "west-heads"'),
}

WARNED = {
    "bucket out of the controller's reach": (
        (PLATFORM, ""),
        "spec.buckets[1]: is in gcp, where the controller in east has no identity: create a Secret",
    ),
    "misspelt region of the state": (
        ("fleet, region: us-east-1}", "fleet, region: us-eastt-1}"),
        'spec.state.region: "us-eastt-1" is not in the table of regions of 2026-11-22; did you mean us-east-1?',
    ),
    "misspelt region of a replica": (
        ("cloud: aws, region: us-east-1", "cloud: aws, region: us-east-1, replicateTo: us-wst-2"),
        'spec.buckets[0].replicateTo: "us-wst-2" is not in the table of regions of 2026-11-22; did you mean us-west-2?',
    ),
    "unknown size": (
        ("instanceTypes: [p5.48xlarge]", "instanceTypes: [p5.8xlarge]"),
        'pools[3].instanceTypes[0]: "p5.8xlarge" is not known (table of 2026-11-29: p5.4xlarge, p5.48xlarge): ',
    ),
    "misspelt machine type": (
        ("instanceTypes: [g2-standard-8]", "instanceTypes: [g2-standrd-8]"),
        "g2-standard-96): did you mean g2-standard-8?",
    ),
    "bucket of an existing cluster": (
        ("context: lab-admin", "context: lab-admin\n    bucket: acme-east"),
        "spec.clusters[3].bucket: has no effect for cloud existing",
    ),
    "no public registry": (
        ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/16, nat: none, interfaceEndpoints: true"),
        "nat: leaves the nodes without the registries of public.ecr.aws, quay.io, registry.k8s.io, nvcr.io: mirror",
    ),
    "no public registry on Google Cloud": (
        ("cidr: 10.1.0.0/20", "cidr: 10.1.0.0/20, nat: none"),
        "spec.clusters[1].network.nat: leaves the nodes without the registries",
    ),
    "member that home does not reach": (
        ("home: east", "home: west"),
        "spec.clusters[0].api.allowed: is empty: the controller in west reaches this API server only over a network",
    ),
    "groups without identities": (
        ("- {name: team-a,", "- {name: team-a, groups: [ml],"),
        "spec.teams[0].groups: are empty on EKS: name the team's IAM roles in iamPrincipals",
    ),
    "newer Kubernetes": (
        ("    zones: [us-east-1a, us-east-1b]\n", '    zones: [us-east-1a, us-east-1b]\n    kubernetes: "1.41"\n'),
        "spec.clusters[0].kubernetes: Kubernetes 1.41 is newer than the tested versions 1.33, 1.34, 1.35, 1.36",
    ),
    "API open to all": (
        ("    network: {cidr: 10.0.0.0/16}", "    api: {allowed: [0.0.0.0/0]}"),
        "opens the API server to the whole internet",
    ),
    "bucket in another region": (
        ("name: acme-east, cloud: aws, region: us-east-1", "name: acme-east, cloud: aws, region: us-west-2"),
        "is in us-west-2, the cluster in us-east-1: 1000 GiB a month cost about $20/month",
    ),
    "no bucket": (("    bucket: acme-east\n", ""), "has no bucket: jobs on it cannot write checkpoints"),
    "image of no registry": (
        ("    image: {repository: registry.example.com/spotladder}\n", ""),
        "has no platform.image",
    ),
    "local state": (("  state: {uri: s3://acme-state/fleet, region: us-east-1}\n", ""), "has no state"),
    "grace longer than the notice": (
        ("      limits: {nodes: 16}", "      disruption: {terminationGracePeriod: 10m}"),
        "10m is longer than the notice of 2m",
    ),
    "consolidation too soon": (
        ("      limits: {nodes: 16}", "      disruption: {consolidateAfter: 30s}"),
        "30s is shorter than a restart of a job",
    ),
    **{
        f"{path} of a ComputeClass": (
            ("{name: l4-on-demand,", f"{{name: l4-on-demand, {given},"),
            f"spec.clusters[1].pools[2].{path}: has no effect with autoscaler compute-class",
        )
        for path, given in {
            "startupTaints": "startupTaints: [{key: own, value: x}]",
            "image": "image: ContainerOptimizedOS@latest",
            "limits.cpu": "limits: {cpu: 64}",
            "limits.memory": "limits: {memory: 1Ti}",
            "disruption.expireAfter": "disruption: {expireAfter: 720h}",
            "disruption.terminationGracePeriod": "disruption: {terminationGracePeriod: 5m}",
        }.items()
    },
    "EFA without placement group": (("      placementGroup: training\n", ""), "pools[3].efa: without placementGroup"),
    "image not pinned": (
        ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@latest,"),
        "pools[2].image: is not pinned",
    ),
    "old image": (
        ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@v20260101,"),
        "pools[2].image: is al2023@v20260101, which is 325 days old",
    ),
    "no price": (('      price: {perNodeHour: "31.46"}\n', ""), "has no price: its costs will be reported as unknown"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    change, expected = REFUSED[case]
    with pytest.raises(InvalidSpec) as error:
        fleet_file(tmp_path, change)
    assert expected in str(error.value)
    assert all(line.startswith(f"{tmp_path}/fleet.yaml:") for line in str(error.value).splitlines())


@pytest.mark.parametrize("case", WARNED)
def test_warned(case: str, tmp_path: Path) -> None:
    change, expected = WARNED[case]
    found = [str(problem) for problem in fleet_file(tmp_path, change).warnings]
    assert [text for text in found if expected in text], found


def test_a_role_fits_the_teams_of_a_large_company(tmp_path: Path) -> None:
    assert fleet_file(tmp_path, many_teams(50)).warnings == ()


@pytest.mark.parametrize(("teams", "refused"), [(19, False), (20, True)])
def test_google_cloud_limits_the_controllers_conditions(teams: int, refused: bool, tmp_path: Path) -> None:
    changes = (("home: east", "home: west"), many_teams(teams))
    if not refused:
        fleet_file(tmp_path, *changes)
        return
    with pytest.raises(InvalidSpec, match=r"spec\.buckets\[1\]: is used by 21 teams \(expected at most 20"):
        fleet_file(tmp_path, *changes)


def test_the_controller_has_no_identity_in_another_account(tmp_path: Path) -> None:
    second = (
        "  - name: west\n    cloud: gcp\n",
        (
            "  - name: far\n    cloud: aws\n    region: us-west-2\n    account: '210987654321'\n    bucket: acme-far\n"
            "    network: {cidr: 10.8.0.0/16}\n    pools:\n    - {name: far-heads, role: heads, families: [m7i]}\n"
            "  - name: west\n    cloud: gcp\n"
        ),
    )
    bucket = ("  - {name: acme-central", "  - {name: acme-far, cloud: aws, region: us-west-2}\n  - {name: acme-central")
    found = [str(problem) for problem in fleet_file(tmp_path, (PLATFORM, ""), second, bucket).warnings]
    assert any("spec.buckets[1]: is in account 210987654321, where the controller in east" in text for text in found)


def test_a_right_fleet_has_neither(tmp_path: Path) -> None:
    assert fleet_file(tmp_path).warnings == ()


def test_the_tables_of_accelerators_have_the_same_families() -> None:
    """An accelerated family without sizes would have no number of accelerators."""
    for cloud, families in regions.ACCELERATORS.items():
        assert set(families) == set(sizes.SIZES[cloud])
        for family in families:
            for name in sizes.types_of(cloud, family):
                assert regions.family_of(cloud, name) == family
                assert sizes.accelerators_of(cloud, family, name)


def test_scarce_accelerators_are_checked_against_the_region(tmp_path: Path) -> None:
    unmoved = fleet_file(
        tmp_path, ("instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}\n", "families: [p4de]\n")
    )
    assert unmoved.warnings == ()
    moved = (
        "region: us-east-1\n    zones: [us-east-1a, us-east-1b]",
        "region: us-east-2\n    zones: [us-east-2a, us-east-2b]",
    )
    elsewhere = fleet_file(
        tmp_path,
        moved,
        ("zones: [us-east-1a]", "zones: [us-east-2a]"),
        ("instanceTypes: [g5.xlarge]\n      accelerator: {type: nvidia-a10g}\n", "families: [p4de]\n"),
    )
    assert any("p4de is not known to be offered in us-east-2" in str(problem) for problem in elsewhere.warnings)


def test_spot_without_fallback(tmp_path: Path) -> None:
    only_spot = (("{name: g5-on-demand,", "{name: g5-on-demand, capacityType: spot,"),
                 ("capacityType: reserved\n", "capacityType: spot\n"),
                 ("      reservation: {capacityBlocks: [cr-0123456789abcdef0]}\n", ""),
                 ("{name: l4-on-demand,", "{name: l4-on-demand, capacityType: spot, price: {perNodeHour: 1},"),
                 ("{name: lab-gpu,", "{name: lab-gpu, capacityType: spot,"))  # fmt: skip
    found = [str(problem) for problem in fleet_file(tmp_path, *only_spot).warnings]
    assert [text for text in found if "has only spot capacity for workers" in text], found


@pytest.mark.parametrize(
    ("today", "verb"), [(date(2027, 1, 20), None), (date(2027, 2, 20), "ends on"), (date(2027, 5, 1), "ended on")]
)
def test_end_of_support(today: date, verb: str | None, tmp_path: Path) -> None:
    found = [str(problem) for problem in fleet_file(tmp_path, today=today).warnings]
    ends = [text for text in found if "standard support" in text]
    assert all(verb in text for text in ends) and ends if verb else not ends


def test_the_default_image_grows_old(tmp_path: Path) -> None:
    released = images.released(images.NODE_IMAGE)
    assert released is not None
    dated = ("{name: g5-on-demand,", "{name: g5-on-demand, image: bottlerocket@v1.60.0,")
    for age, warned in ((images.OLDEST, False), (images.OLDEST + timedelta(days=1), True)):
        found = [str(problem) for problem in fleet_file(tmp_path, dated, today=released + age).warnings]
        assert any(f"pools without image get {images.NODE_IMAGE}" in text for text in found) is warned


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as error:
        fleet_file(tmp_path, ("home: east", "home: nowhere"), ("cidr: 10.1.0.0/20", "cidr: 10.0.128.0/20"))
    assert len(str(error.value).splitlines()) == 2


def test_the_rules() -> None:
    """The test fails for a new rule until it has its cases above (those of add-ons are in test_addons.py)."""
    covered = {
        "unique_names",
        "team_names",
        "accounts",
        "instance_names",
        "efa",
        "known_names",
        "name_lengths",
        "tags",
        "network_ranges",
        "unreachable_endpoints",
        "reachable_members",
        "team_members",
        "api_access",
        "zones",
        "accelerators",
        "version_matrix",
        "end_of_support",
        "addon_versions",
        "node_images",
        "heads",
        "fallback",
        "grace",
        "known_prices",
        "compute_class_taints",
        "compute_class_consolidation",
        "compute_class_options",
        "replicas",
        "role_sizes",
        "conditions",
        "controller_access",
        "unused_buckets",
        "buckets",
        "state",
        "controller_image",
        "bucket_regions",
    }
    assert {rule.__name__ for rule in CHECKS} == covered
