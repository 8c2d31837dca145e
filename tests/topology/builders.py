"""Fleet files for tests: one fleet with a cluster of each kind, and changes to it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from spotladder_infra.topology.read import FleetFile, read_fleet

TODAY = date(2026, 11, 22)

PLATFORM = """\
  platform:
    image: {repository: registry.example.com/spotladder}
    values: {controller: {checkpointSecrets: [checkpoints]}}
"""
"""Part of FLEET. The controller on AWS needs a Secret for the bucket on Google Cloud."""

FLEET = """\
apiVersion: spotladder.io/v1alpha1
kind: Fleet
metadata: {name: training}
spec:
  home: east
  state: {uri: s3://acme-state/fleet, region: us-east-1}
  tags: {cost-center: ml}
  buckets:
  - {name: acme-east, cloud: aws, region: us-east-1}
  - {name: acme-central, cloud: gcp, region: us-central1}
  teams:
  - {name: team-a, budget: 5000, quota: {accelerators: 64, cpu: "512"}}
  - {name: team-b, clusters: [west]}
  clusters:
  - name: east
    cloud: aws
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    account: "123456789012"
    bucket: acme-east
    network: {cidr: 10.0.0.0/16}
    pools:
    - {name: east-heads, role: heads, families: [m7i]}
    - name: g5-spot
      capacityType: spot
      instanceTypes: [g5.xlarge]
      accelerator: {type: nvidia-a10g}
      limits: {nodes: 16}
    - {name: g5-on-demand, instanceTypes: [g5.xlarge], accelerator: {type: nvidia-a10g}}
    - name: p5-reserved
      capacityType: reserved
      instanceTypes: [p5.48xlarge]
      zones: [us-east-1a]
      reservation: {capacityBlocks: [cr-0123456789abcdef0]}
      efa: true
      placementGroup: training
      price: {perNodeHour: "31.46"}
  - name: west
    cloud: gcp
    project: acme-ml
    region: us-central1
    zones: [us-central1-a, us-central1-b]
    autoscaler: compute-class
    bucket: acme-central
    network: {cidr: 10.1.0.0/20}
    pools:
    - {name: west-heads, role: heads, families: [n2]}
    - name: l4-spot
      capacityType: spot
      instanceTypes: [g2-standard-8]
      accelerator: {type: nvidia-l4}
      price: {perNodeHour: "0.34"}
    - {name: l4-on-demand, instanceTypes: [g2-standard-8], accelerator: {type: nvidia-l4}}
  - name: alpha
    cloud: gcp
    project: acme-ml
    region: us-central1
    zones: [us-central1-a]
    autoscaler: karpenter
    bucket: acme-central
    network: {cidr: 10.1.16.0/20, pods: 10.132.0.0/14}
    pools:
    - {name: alpha-heads, role: heads, families: [n2]}
    - {name: n2-spot, capacityType: spot, families: [n2], price: {perNodeHour: "0.09"}}
  - name: lab
    cloud: existing
    context: lab-admin
    pools:
    - {name: lab-heads, role: heads, selectors: {role: system}}
    - {name: lab-gpu, selectors: {gpu: a10g}, price: {perNodeHour: "1.006"}}
  - name: laptop
    cloud: kind
    pools:
    - {name: laptop-heads, role: heads, selectors: {spotladder.io/pool: system}}
    - name: laptop-spot
      capacityType: spot
      selectors: {spotladder.io/pool: spot}
      notice: 30s
      price: {perNodeHour: "0.42", onDemandPerNodeHour: "1.006"}
"""
FLEET += PLATFORM


KMS_KEY = "projects/acme-ml/locations/us-central1/keyRings/ml/cryptoKeys/checkpoints"

EVERY_OPTION = (
    ("cloud: aws, region: us-east-1}", "cloud: aws, region: us-east-1, replicateTo: us-west-2}"),
    ("cloud: gcp, region: us-central1}", f"cloud: gcp, region: us-central1, kmsKey: {KMS_KEY}}}"),
    (
        "    network: {cidr: 10.0.0.0/16}\n",
        """\
    network: {cidr: 10.0.0.0/16, nat: per-zone, interfaceEndpoints: true}
    api: {allowed: [203.0.113.0/24], admins: ["arn:aws:iam::123456789012:role/admins"]}
    system: {instanceType: m7i.xlarge, count: 3}
    addons: {coredns: v1.12.4-eksbuild.1, amazon-cloudwatch-observability: v6.2.0-eksbuild.1,
      aws-efs-csi-driver: v2.1.0-eksbuild.1}
    volumes: [{name: data, spec: {csi: {driver: efs.csi.aws.com, volumeHandle: fs-0123456789abcdef0}}}]
    budgetAlarm: {monthly: 1234567.5, email: ml@example.com}
    imageRepository: true
""",
    ),
    (
        "    network: {cidr: 10.1.0.0/20}\n",
        """\
    network: {cidr: 10.1.0.0/20}
    api: {allowed: [203.0.113.0/24]}
    system: {instanceType: e2-standard-8, count: 1}
    imageRepository: true
    deletionProtection: true
""",
    ),
)
"""Changes that set the options of the stacks of `east` and `west`, except the protection of `east`, which needs a newer
provider than the tests have."""


def fleet_file(folder: Path, *changes: tuple[str, str], today: date = TODAY) -> FleetFile:
    """The fleet with some text replaced; every change must apply."""
    text = FLEET
    for old, new in changes:
        assert text.count(old) >= 1, f"{old!r} is not in the fleet file"
        text = text.replace(old, new, 1)
    path = folder / "fleet.yaml"
    path.write_text(text)
    return read_fleet(path, today)


def many_teams(count: int) -> tuple[str, str]:
    """A change of the fleet file: more teams, with a namespace in every cluster."""
    more = "".join(f"  - {{name: research-{number:03}}}\n" for number in range(count))
    return "  - {name: team-b, clusters: [west]}\n", more
