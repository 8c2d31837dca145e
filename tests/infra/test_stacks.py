"""The synthesized stacks: golden files, and rules that are independent of the golden files."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import spotladder_infra
from spotladder_infra import checkpoints, costs
from spotladder_infra.names import common_tags
from spotladder_infra.rendering.values import values
from spotladder_infra.terraform.imports import import_steps
from spotladder_infra.topology.fleet import Fleet
from tests.golden import check
from tests.infra.golden import golden
from tests.infra.synthesized import synthesized
from tests.topology.builders import KMS_KEY, fleet_file

Configuration = dict[str, Any]
CONSTRUCTS = Path(spotladder_infra.__file__).parent / "constructs"


def test_tags_and_labels_are_those_by_which_resources_are_recognised(
    configuration: Configuration, fleet: Fleet
) -> None:
    """The bindings replace hyphens in keys of an argument of a provider."""
    found = {
        "east": configuration["east"]["provider"]["aws"][0]["default_tags"][0]["tags"],
        "west": configuration["west"]["provider"]["google"][0]["default_labels"],
        "alpha": configuration["alpha"]["provider"]["google"][0]["default_labels"],
    }
    assert found == {name: common_tags(fleet, fleet.cluster(name)) for name in found}
    template = configuration["east"]["resource"]["aws_launch_template"]["system-template"]
    launched = {entry["resource_type"]: entry["tags"] for entry in template["tag_specifications"]}
    expected = {"Name": "east-system", **found["east"]}
    assert launched == {"instance": expected, "volume": expected}, "EC2 does not give them those of the provider"


@pytest.mark.parametrize("cluster", ["east", "west", "alpha"])
def test_golden(cluster: str, configuration: Configuration) -> None:
    check(f"infra/golden/{cluster}.txt", golden(configuration)[cluster])


def test_a_stack_has_no_path_of_the_machine_that_wrote_it(stacks: dict[str, Path]) -> None:
    """With the state in a bucket, everyone who applies a stack writes the same one."""
    for folder in stacks.values():
        text = (folder / "cdk.tf.json").read_text()
        assert [path for path in (str(folder.parents[1]), str(CONSTRUCTS.parent), sys.prefix) if path in text] == []


def test_blocks_in_lists_are_typed() -> None:
    """The bindings turn a dict into a block, but not one in a list: there, they silently drop keys with `_`."""
    lost = []
    for path in CONSTRUCTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            entries = node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else []
            for entry in entries:
                keys = (
                    [str(key.value) for key in entry.keys if isinstance(key, ast.Constant)]
                    if isinstance(entry, ast.Dict)
                    else []
                )
                lost += [f"{path.name}:{entry.lineno}: {key}" for key in keys if "_" in key]
    assert not lost


def test_resources_with_unique_names_can_be_imported(configuration: Configuration) -> None:
    expected: dict[str, dict[str, str]] = {
        "east": {
            "aws_eks_cluster.cluster": "east",
            "aws_eks_node_group.system": "east:system",
            "aws_eks_addon.coredns": "east:coredns",
            "aws_iam_role.node-role": "east-node",
            "aws_s3_bucket.checkpoints": "acme-east",
            "aws_subnet.private-us-east-1a": "ID",
        },
        "alpha": {
            "google_compute_network.network": "projects/acme-ml/global/networks/alpha",
            "google_compute_router_nat.nat": "projects/acme-ml/regions/us-central1/routers/alpha/alpha",
            "google_container_cluster.cluster": "projects/acme-ml/locations/us-central1/clusters/alpha",
            "google_container_node_pool.system": "acme-ml/us-central1/alpha/system",
            "google_project_iam_custom_role.karpenter-role": "projects/acme-ml/roles/spotladder_karpenter_alpha",
        },
    }
    for cluster, ids in expected.items():
        for address, found in ids.items():
            assert import_steps(address, configuration[cluster], cluster) == [("import", address, found)]


def test_a_key_is_imported_before_its_alias(configuration: Configuration) -> None:
    alias, key = "aws_kms_alias.checkpoints-key-alias", "aws_kms_key.checkpoints-key"
    assert import_steps(alias, configuration["east"], "east") == [
        ("state", "rm", key),
        ("import", key, "KEY_ID"),
        ("import", alias, "alias/spotladder/acme-east"),
    ]


def test_the_api_server_is_private_unless_it_is_opened(configuration: Configuration, tmp_path: Path) -> None:
    access = configuration["east"]["resource"]["aws_eks_cluster"]["cluster"]["vpc_config"]
    assert (access["endpoint_private_access"], access["endpoint_public_access"]) == (True, False)
    opened = one(tmp_path, ("    network: {cidr: 10.0.0.0/16}\n", "    api: {allowed: [203.0.113.0/24]}\n"))
    access = opened["resource"]["aws_eks_cluster"]["cluster"]["vpc_config"]
    assert (access["endpoint_public_access"], access["public_access_cidrs"]) == (True, ["203.0.113.0/24"])


def test_gke_has_authorized_networks_only_with_its_ip_endpoints(configuration: Configuration, tmp_path: Path) -> None:
    """Authorized networks apply to the IP endpoints only; IAM protects the DNS endpoint."""
    plane = configuration["west"]["resource"]["google_container_cluster"]["cluster"]
    assert plane["control_plane_endpoints_config"]["ip_endpoints_config"] == {"enabled": False}
    assert "master_authorized_networks_config" not in plane
    network = "    network: {cidr: 10.1.0.0/20}\n"
    opened = one(tmp_path, (network, f"{network}    api: {{allowed: [203.0.113.0/24]}}\n"), cluster="west")
    plane = opened["resource"]["google_container_cluster"]["cluster"]
    assert plane["control_plane_endpoints_config"]["ip_endpoints_config"] == {"enabled": True}
    assert plane["master_authorized_networks_config"]["cidr_blocks"] == [{"cidr_block": "203.0.113.0/24"}]
    assert plane["private_cluster_config"]["enable_private_endpoint"] is False


def test_the_controller_reaches_a_member_on_gke_with_a_token_of_kubernetes(
    configuration: Configuration, tmp_path: Path
) -> None:
    """The DNS endpoint refuses such tokens by default; a home cluster needs none."""

    def tokens(stack: Configuration) -> bool:
        endpoints = stack["resource"]["google_container_cluster"]["cluster"]["control_plane_endpoints_config"]
        return bool(endpoints["dns_endpoint_config"]["enable_k8s_tokens_via_dns"])

    home = one(tmp_path, ("home: east", "home: west"), cluster="west")
    assert [tokens(configuration["west"]), tokens(configuration["alpha"]), tokens(home)] == [True, True, False]
    assert configuration["west"]["terraform"]["required_providers"]["google"]["version"] == ">= 7.9.0, < 8.0.0"


def test_node_auto_provisioning_may_create_the_accelerators_of_all_pools(tmp_path: Path) -> None:
    """GKE creates no node with an accelerator that has no limit; the name is that of Compute Engine."""
    pool = "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}"
    stack = one(tmp_path, (pool, "instanceTypes: [a2-highgpu-1g]"), cluster="west")
    limits = stack["resource"]["google_container_cluster"]["cluster"]["cluster_autoscaling"]["resource_limits"]
    assert [entry["resource_type"] for entry in limits] == ["cpu", "memory", "nvidia-tesla-a100", "nvidia-l4"]


@pytest.mark.parametrize("home", ["west", "east"])
def test_the_addresses_of_the_home_cluster_are_outputs(home: str, configuration: Configuration, tmp_path: Path) -> None:
    """A member on EKS allows them, so Cloud NAT of a home on GKE has a fixed one."""
    stack = configuration["east"] if home == "east" else one(tmp_path, ("home: east", "home: west"), cluster="west")
    addresses = {
        "east": ["${aws_eip.nat-address-us-east-1a.public_ip}"],
        "west": ["${google_compute_address.nat-address.address}"],
    }
    assert stack["output"]["spotladder"]["value"]["egress"] == addresses[home]
    nat = configuration["west"]["resource"]["google_compute_router_nat"]["nat"]
    assert nat["nat_ip_allocate_option"] == "AUTO_ONLY", "a member's addresses do not matter"


def test_a_member_on_eks_allows_the_addresses_of_the_home_cluster(tmp_path: Path) -> None:
    """Terraform gets them as a variable: the home cluster may be created after the stack is written."""
    api = ("    network: {cidr: 10.0.0.0/16}\n", "    api: {allowed: [203.0.113.0/24]}\n")
    stack = one(tmp_path, ("home: east", "home: west"), api)
    assert stack["variable"]["home_egress"]["default"] == []
    access = stack["resource"]["aws_eks_cluster"]["cluster"]["vpc_config"]
    assert access["public_access_cidrs"] == '${distinct(concat(["203.0.113.0/24"], var.home_egress))}'
    private = one(tmp_path, ("home: east", "home: west"))
    assert private["resource"]["aws_eks_cluster"]["cluster"]["vpc_config"]["endpoint_public_access"] is False


def test_members_of_teams_have_access_entries(tmp_path: Path) -> None:
    """One entry for each role, in the groups of all its teams; the RoleBindings of a team name the same groups."""
    admins, ml = (f"arn:aws:iam::123456789012:role/{name}" for name in ("admins", "ml"))
    fleet = fleet_file(
        tmp_path,
        ("    network: {cidr: 10.0.0.0/16}\n", f"    api: {{admins: ['{admins}']}}\n"),
        ("- {name: team-a,", f"- {{name: team-a, iamPrincipals: ['{admins}', '{ml}'],"),
        ("- {name: team-b,", f"- {{name: team-b, groups: [vision], iamPrincipals: ['{ml}'],"),
    ).fleet
    (stack,) = synthesized(fleet, tmp_path, "east")
    entries = {
        entry["principal_arn"]: entry.get("kubernetes_groups")
        for entry in stack["resource"]["aws_eks_access_entry"].values()
    }
    assert entries == {admins: ["team-a"], ml: ["team-a", "vision"], "${aws_iam_role.node-role.arn}": None}
    assert len(stack["resource"]["aws_eks_access_policy_association"]) == 1, "members administer nothing"
    assert [team["groups"] for team in values(fleet, fleet.cluster("east"))["teams"]] == [["team-a"], ["vision"]]


def test_the_policies_of_aws_outlive_what_uses_them(configuration: Configuration) -> None:
    """Otherwise nodes that drain lose the network add-on's permissions, and leave interfaces that keep the VPC."""
    resources = configuration["east"]["resource"]
    attached = {f"aws_iam_role_policy_attachment.{name}" for name in resources["aws_iam_role_policy_attachment"]}
    users = {
        "cluster": resources["aws_eks_cluster"]["cluster"],
        "system": resources["aws_eks_node_group"]["system"],
        "ebs": resources["aws_eks_addon"]["aws-ebs-csi-driver"],
    }
    for role, user in users.items():
        policies = {address for address in attached if address.partition(".")[2].startswith(f"{role}-")}
        assert policies
        assert policies <= set(user["depends_on"])


@pytest.mark.parametrize(("nat", "gateways"), [("single", 1), ("per-zone", 2), ("none", 0)])
def test_the_route_of_nodes_to_the_internet(nat: str, gateways: int, tmp_path: Path) -> None:
    network = f"    network: {{cidr: 10.0.0.0/16, nat: {nat}, interfaceEndpoints: true}}\n"
    found = one(tmp_path, ("    network: {cidr: 10.0.0.0/16}\n", network))["resource"]
    assert len(found.get("aws_nat_gateway", {})) == gateways
    assert len(found["aws_vpc_endpoint"]) == 9
    assert bool(found.get("aws_internet_gateway")) == bool(gateways)


def test_no_rule_deletes_a_committed_checkpoint(configuration: Configuration) -> None:
    rules = configuration["east"]["resource"]["aws_s3_bucket_lifecycle_configuration"]["checkpoints-lifecycle"]["rule"]
    assert all("expiration" not in rule and "transition" not in rule for rule in rules)
    for rule in configuration["west"]["resource"]["google_storage_bucket"]["checkpoints"]["lifecycle_rule"]:
        assert (
            rule["action"]["type"] == "AbortIncompleteMultipartUpload" or rule["condition"]["with_state"] == "ARCHIVED"
        )


def test_checkpoints_and_their_key_are_protected(configuration: Configuration, tmp_path: Path) -> None:
    resources = configuration["east"]["resource"]
    protected = {"prevent_destroy": True}
    assert resources["aws_s3_bucket"]["checkpoints"]["lifecycle"] == protected
    assert resources["aws_kms_key"]["checkpoints-key"]["lifecycle"] == protected
    assert configuration["west"]["resource"]["google_storage_bucket"]["checkpoints"]["lifecycle"] == protected
    off = (
        "{name: acme-east, cloud: aws, region: us-east-1}",
        "{name: acme-east, cloud: aws, region: us-east-1, deletionProtection: false}",
    )
    assert "lifecycle" not in one(tmp_path, off)["resource"]["aws_s3_bucket"]["checkpoints"]


def test_a_bucket_in_another_region_is_created_there(tmp_path: Path) -> None:
    replicated = "{name: acme-east, cloud: aws, region: us-west-2, replicateTo: eu-west-1}"
    stack = one(tmp_path, ("{name: acme-east, cloud: aws, region: us-east-1}", replicated))
    regions = {entry.get("alias"): entry["region"] for entry in stack["provider"]["aws"]}
    assert regions == {None: "us-east-1", "checkpoints": "us-west-2", "replica": "eu-west-1"}
    found = {
        f"{kind}.{name}": body.get("provider")
        for kind, named in stack["resource"].items()
        if kind.startswith(("aws_s3_", "aws_kms_"))
        for name, body in named.items()
    }
    assert {address: provider for address, provider in found.items() if ".cluster-key" not in address} == {
        address: "aws.replica" if ".replica-" in address or address.endswith(".replica") else "aws.checkpoints"
        for address in found
        if ".cluster-key" not in address
    }


def test_a_bucket_and_its_access_belong_to_one_stack(configuration: Configuration) -> None:
    assert "google_storage_bucket" in configuration["west"]["resource"]
    assert "google_storage_bucket" not in configuration["alpha"]["resource"]
    assert configuration["west"]["resource"]["google_storage_bucket_iam_member"]
    assert "google_storage_bucket_iam_member" not in configuration["alpha"]["resource"]


def test_nodes_and_logs_have_the_principals_of_china(tmp_path: Path) -> None:
    """EKS refuses node groups whose role trusts another one."""
    zones = "    region: us-east-1\n    zones: [us-east-1a, us-east-1b]"
    there = (zones, zones.replace("us-east-1", "cn-north-1"))
    stack = one(tmp_path, there, ("zones: [us-east-1a]", "zones: [cn-north-1a]"))["resource"]
    trusted = {
        name: json.loads(body["assume_role_policy"])["Statement"][0]["Principal"]["Service"]
        for name, body in stack["aws_iam_role"].items()
    }
    assert (trusted["node-role"], trusted["system-role"]) == ("ec2.amazonaws.com.cn", "ec2.amazonaws.com.cn")
    assert (trusted["cluster-role"], trusted["karpenter-role"]) == ("eks.amazonaws.com", "pods.eks.amazonaws.com")
    assert '"logs.cn-north-1.amazonaws.com.cn"' in stack["aws_kms_key"]["cluster-key"]["policy"]


def test_the_number_of_system_nodes_can_be_changed(configuration: Configuration) -> None:
    """Nothing else scales them, and EKS refuses a minimum above the desired number."""
    group = configuration["east"]["resource"]["aws_eks_node_group"]["system"]
    assert (group["scaling_config"]["desired_size"], group["lifecycle"]["ignore_changes"]) == (2, ["subnet_ids"])


def test_options(optional_stacks: dict[str, Path]) -> None:
    resources = json.loads((optional_stacks["east"] / "cdk.tf.json").read_text())["resource"]
    assert resources["aws_eks_addon"]["coredns"]["addon_version"] == "v1.12.4-eksbuild.1"
    assert resources["aws_budgets_budget"]["budget"]["limit_amount"] == "1234567.5"
    assert resources["aws_budgets_budget"]["budget"]["notification"][1]["notification_type"] == "FORECASTED"
    assert resources["aws_eks_access_entry"]["admin-0"]["principal_arn"] == "arn:aws:iam::123456789012:role/admins"
    assert resources["aws_s3_bucket"]["replica"]["provider"] == "aws.replica"
    replication = resources["aws_s3_bucket_replication_configuration"]["replication"]["rule"][0]
    assert replication["delete_marker_replication"]["status"] == "Disabled"
    assert resources["aws_s3_bucket_replication_configuration"]["replication"]["depends_on"] == [
        "aws_s3_bucket_versioning.checkpoints-versions",
        "aws_s3_bucket_versioning.replica-versions",
    ], "S3 refuses a replication without them"


def test_a_protected_cluster_needs_a_provider_that_can_protect_it(configuration: Configuration, tmp_path: Path) -> None:
    def version(stack: Configuration) -> str:
        return str(stack["terraform"]["required_providers"]["aws"]["version"])

    assert version(configuration["east"]) == ">= 5.95.0, < 7.0.0"
    protected = one(tmp_path, ("    bucket: acme-east\n", "    bucket: acme-east\n    deletionProtection: true\n"))
    assert protected["resource"]["aws_eks_cluster"]["cluster"]["deletion_protection"] is True
    assert version(protected) == ">= 6.9.0, < 7.0.0"


def test_a_key_of_the_user_on_gcp(optional_stacks: dict[str, Path]) -> None:
    resources = json.loads((optional_stacks["west"] / "cdk.tf.json").read_text())["resource"]
    bucket = resources["google_storage_bucket"]["checkpoints"]
    assert bucket["encryption"] == {"default_kms_key_name": KMS_KEY}
    access = "google_kms_crypto_key_iam_member.checkpoints-key-access"
    assert bucket["depends_on"] == [access], "Google refuses a bucket whose key its service agent may not use"
    assert checkpoints.resources([access]) == [access], "a bucket that is kept cannot be read without it"
    grant = resources["google_kms_crypto_key_iam_member"]["checkpoints-key-access"]
    assert (grant["crypto_key_id"], grant["role"]) == (KMS_KEY, "roles/cloudkms.cryptoKeyEncrypterDecrypter")
    assert grant["member"] == "${data.google_storage_project_service_account.checkpoints-agent.member}"


def test_an_optional_addon_has_its_identity_before_its_pods(optional_stacks: dict[str, Path]) -> None:
    resources = json.loads((optional_stacks["east"] / "cdk.tf.json").read_text())["resource"]
    addon = resources["aws_eks_addon"]["amazon-cloudwatch-observability"]
    assert "aws_eks_pod_identity_association.cloudwatch-identity" in addon["depends_on"]
    bound = resources["aws_eks_pod_identity_association"]["cloudwatch-identity"]
    assert (bound["namespace"], bound["service_account"]) == ("amazon-cloudwatch", "cloudwatch-agent")
    assert "CloudWatchAgentServerPolicy" in json.dumps(resources["aws_iam_role_policy_attachment"])


def test_a_repository_for_images(optional_stacks: dict[str, Path]) -> None:
    east, west = (json.loads((optional_stacks[name] / "cdk.tf.json").read_text()) for name in ("east", "west"))
    assert west["resource"]["google_artifact_registry_repository"]["images"]["format"] == "DOCKER"
    assert east["resource"]["aws_ecr_repository"]["images"]["name"] == "east"
    written = [json.dumps(stack["output"]) for stack in (east, west)]
    assert "${aws_ecr_repository.images.repository_url}" in written[0]
    assert "${google_artifact_registry_repository.images.registry_uri}" in written[1]


def one(tmp_path: Path, *changes: tuple[str, str], cluster: str = "east") -> Configuration:
    """The stack of one cluster of a changed fleet."""
    return synthesized(fleet_file(tmp_path, *changes).fleet, tmp_path, cluster)[0]


def test_costs_count_the_endpoints_of_the_stack() -> None:
    from spotladder_infra.constructs.aws.network import ENDPOINTS

    assert len(ENDPOINTS) == costs.INTERFACE_ENDPOINTS


KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b"
OF_THE_COMPANY = (
    (
        "    network: {cidr: 10.0.0.0/16}\n",
        """\
    network:
      existing: {vpc: vpc-0123abcd, subnetTags: {tier: private}, securityGroups: [sg-0123abcd]}
    roles: {path: /platform/, prefix: ml-, permissionsBoundary: "arn:aws:iam::123456789012:policy/limits"}
    kmsKey: KEY
""".replace("KEY", KEY),
    ),
    ("cloud: aws, region: us-east-1}", f"cloud: aws, region: us-east-1, kmsKey: {KEY}}}"),
    (
        "    network: {cidr: 10.1.0.0/20}\n",
        """\
    kmsKey: KEY
    network:
      existing:
        network: projects/acme-net/global/networks/shared
        subnetwork: projects/acme-net/regions/us-central1/subnetworks/gke
        podsRange: gke-pods
        servicesRange: gke-services
""".replace("KEY", KMS_KEY),
    ),
)
"""Networks, keys and rules for roles that exist already."""


def test_a_cluster_in_the_network_and_with_the_keys_of_the_company(tmp_path: Path, stacks: dict[str, Path]) -> None:
    assert stacks
    fleet = fleet_file(tmp_path, *OF_THE_COMPANY).fleet
    east, west = synthesized(fleet, tmp_path, "east", "west")
    created = set(east["resource"]) & {"aws_vpc", "aws_subnet", "aws_nat_gateway", "aws_kms_key", "aws_vpc_endpoint"}
    assert created == set()
    assert east["data"]["aws_subnets"]["subnets"]["filter"] == [{"name": "vpc-id", "values": ["vpc-0123abcd"]}]
    plane = east["resource"]["aws_eks_cluster"]["cluster"]
    subnets = "${data.aws_subnets.subnets.ids}"
    assert east["output"]["spotladder"]["value"]["network"] == {
        "network": "vpc-0123abcd",
        "subnets": subnets,
        "securityGroups": [
            "${aws_eks_cluster.cluster.vpc_config[0].cluster_security_group_id}",
            "${aws_security_group.nodes.id}",
            "sg-0123abcd",
        ],
    }
    assert plane["vpc_config"]["subnet_ids"] == subnets
    assert plane["vpc_config"]["security_group_ids"] == ["sg-0123abcd"]
    assert east["resource"]["aws_eks_node_group"]["system"]["subnet_ids"] == subnets
    assert east["resource"]["aws_security_group"]["nodes"]["vpc_id"] == "vpc-0123abcd"
    assert plane["encryption_config"]["provider"]["key_arn"] == KEY
    assert east["resource"]["aws_cloudwatch_log_group"]["cluster-logs"]["kms_key_id"] == KEY
    roles = east["resource"]["aws_iam_role"].values()
    assert len(roles) > 5
    for role in roles:
        assert role["name"].startswith("ml-east-")
        assert role["path"] == "/platform/"
        assert role["permissions_boundary"] == "arn:aws:iam::123456789012:policy/limits"
    used = [json.loads(policy["policy"]) for policy in east["resource"]["aws_iam_role_policy"].values()]
    keys = {
        resource
        for policy in used
        for entry in policy["Statement"]
        for resource in entry["Resource"]
        if ":kms:" in resource
    }
    assert keys == {KEY}
    classes = values(fleet, fleet.cluster("east"))["nodeClasses"]
    for entry in classes:
        assert entry["spec"]["subnetSelectorTerms"] == [{"tags": {"tier": "private"}}]
        assert {"id": "sg-0123abcd"} in entry["spec"]["securityGroupSelectorTerms"]

    assert (
        set(west["resource"]) & {"google_compute_network", "google_compute_subnetwork", "google_compute_router"}
        == set()
    )
    plane = west["resource"]["google_container_cluster"]["cluster"]
    assert plane["network"] == "projects/acme-net/global/networks/shared"
    assert plane["subnetwork"] == "projects/acme-net/regions/us-central1/subnetworks/gke"
    ranges = {"cluster_secondary_range_name": "gke-pods", "services_secondary_range_name": "gke-services"}
    assert plane["ip_allocation_policy"] == ranges
    assert plane["database_encryption"] == {"state": "ENCRYPTED", "key_name": KMS_KEY}
