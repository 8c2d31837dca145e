"""The permissions that Terraform needs for the resources and data sources of a stack, by their types.

Sources, read on `AS_OF`: the calls of the AWS provider 6 and the Service Authorization Reference of AWS; the IAM
reference of Google Cloud. Actions that create, change, read and delete are listed; tests compare the types with the
stacks and the actions with the definitions of AWS.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

AS_OF = date(2026, 11, 29)

_TAGS = "ec2:CreateTags ec2:DeleteTags"
_GROUP_RULE = "ec2:DescribeSecurityGroupRules ec2:ModifySecurityGroupRules"
_BUCKET_READS = (
    "s3:GetAccelerateConfiguration s3:GetBucketAcl s3:GetBucketCORS s3:GetBucketLogging "
    "s3:GetBucketObjectLockConfiguration s3:GetBucketRequestPayment s3:GetBucketTagging s3:GetBucketWebsite "
    "s3:ListBucket"
)

AWS: Mapping[str, str] = MappingProxyType(
    {
        "data.aws_eks_cluster": "eks:DescribeCluster",
        "data.aws_subnets": "ec2:DescribeSubnets",
        "aws_budgets_budget": "budgets:ModifyBudget budgets:ViewBudget budgets:ListTagsForResource budgets:TagResource "
        "budgets:UntagResource",
        "aws_cloudwatch_event_rule": "events:DeleteRule events:DescribeRule events:ListTagsForResource events:PutRule "
        "events:TagResource events:UntagResource",
        "aws_cloudwatch_event_target": "events:ListTargetsByRule events:PutTargets events:RemoveTargets",
        "aws_cloudwatch_log_group": "logs:AssociateKmsKey logs:CreateLogGroup logs:DeleteLogGroup "
        "logs:DescribeLogGroups logs:ListTagsForResource logs:PutRetentionPolicy logs:TagResource logs:UntagResource",
        "aws_default_security_group": "ec2:DescribeSecurityGroups ec2:RevokeSecurityGroupEgress "
        f"ec2:RevokeSecurityGroupIngress {_TAGS}",
        "aws_ec2_tag": f"ec2:DescribeTags {_TAGS}",
        "aws_ecr_repository": "ecr:CreateRepository ecr:DeleteRepository ecr:DescribeRepositories "
        "ecr:ListTagsForResource ecr:PutImageScanningConfiguration ecr:PutImageTagMutability ecr:TagResource "
        "ecr:UntagResource",
        "aws_eip": "ec2:AllocateAddress ec2:DescribeAddresses ec2:DescribeAddressesAttribute ec2:DisassociateAddress "
        f"ec2:ReleaseAddress {_TAGS}",
        "aws_eks_access_entry": "eks:CreateAccessEntry eks:DeleteAccessEntry eks:DescribeAccessEntry "
        "eks:UpdateAccessEntry eks:TagResource eks:UntagResource",
        "aws_eks_access_policy_association": "eks:AssociateAccessPolicy eks:DisassociateAccessPolicy "
        "eks:ListAssociatedAccessPolicies",
        "aws_eks_addon": "eks:CreateAddon eks:DeleteAddon eks:DescribeAddon eks:DescribeAddonVersions "
        "eks:DescribeUpdate eks:UpdateAddon eks:TagResource eks:UntagResource",
        "aws_eks_cluster": "eks:CreateCluster eks:DeleteCluster eks:DescribeCluster eks:DescribeUpdate "
        "eks:UpdateClusterConfig eks:UpdateClusterVersion eks:TagResource eks:UntagResource "
        "iam:CreateServiceLinkedRole ec2:DescribeSubnets ec2:DescribeSecurityGroups ec2:DescribeVpcs kms:CreateGrant "
        "kms:DescribeKey",
        "aws_eks_node_group": "eks:CreateNodegroup eks:DeleteNodegroup eks:DescribeNodegroup eks:DescribeUpdate "
        "eks:UpdateNodegroupConfig eks:UpdateNodegroupVersion eks:TagResource eks:UntagResource ec2:RunInstances "
        f"{_TAGS}",
        "aws_eks_pod_identity_association": "eks:CreatePodIdentityAssociation eks:DeletePodIdentityAssociation "
        "eks:DescribePodIdentityAssociation eks:UpdatePodIdentityAssociation eks:TagResource eks:UntagResource",
        "aws_iam_instance_profile": "iam:AddRoleToInstanceProfile iam:CreateInstanceProfile iam:DeleteInstanceProfile "
        "iam:GetInstanceProfile iam:RemoveRoleFromInstanceProfile iam:TagInstanceProfile iam:UntagInstanceProfile",
        "aws_iam_role": "iam:CreateRole iam:DeleteRole iam:GetRole iam:ListInstanceProfilesForRole iam:PassRole "
        "iam:PutRolePermissionsBoundary iam:TagRole iam:UntagRole iam:UpdateAssumeRolePolicy iam:UpdateRole",
        "aws_iam_role_policy": "iam:DeleteRolePolicy iam:GetRolePolicy iam:ListRolePolicies iam:PutRolePolicy",
        "aws_iam_role_policy_attachment": "iam:AttachRolePolicy iam:DetachRolePolicy iam:ListAttachedRolePolicies",
        "aws_internet_gateway": "ec2:AttachInternetGateway ec2:CreateInternetGateway ec2:DeleteInternetGateway "
        f"ec2:DescribeInternetGateways ec2:DetachInternetGateway {_TAGS}",
        "aws_kms_alias": "kms:CreateAlias kms:DeleteAlias kms:ListAliases kms:UpdateAlias",
        "aws_kms_key": "kms:CreateKey kms:DescribeKey kms:EnableKeyRotation kms:GetKeyPolicy kms:GetKeyRotationStatus "
        "kms:ListResourceTags kms:PutKeyPolicy kms:ScheduleKeyDeletion kms:TagResource kms:UntagResource",
        "aws_launch_template": "ec2:CreateLaunchTemplate ec2:CreateLaunchTemplateVersion ec2:DeleteLaunchTemplate "
        f"ec2:DescribeLaunchTemplateVersions ec2:DescribeLaunchTemplates ec2:ModifyLaunchTemplate {_TAGS}",
        "aws_nat_gateway": f"ec2:CreateNatGateway ec2:DeleteNatGateway ec2:DescribeNatGateways {_TAGS}",
        "aws_route": "ec2:CreateRoute ec2:DeleteRoute ec2:DescribeRouteTables",
        "aws_route_table": f"ec2:CreateRouteTable ec2:DeleteRouteTable ec2:DescribeRouteTables {_TAGS}",
        "aws_route_table_association": "ec2:AssociateRouteTable ec2:DisassociateRouteTable",
        "aws_s3_bucket": f"s3:CreateBucket s3:DeleteBucket s3:PutBucketTagging {_BUCKET_READS}",
        "aws_s3_bucket_lifecycle_configuration": "s3:GetLifecycleConfiguration s3:PutLifecycleConfiguration",
        "aws_s3_bucket_ownership_controls": "s3:GetBucketOwnershipControls s3:PutBucketOwnershipControls",
        "aws_s3_bucket_policy": "s3:DeleteBucketPolicy s3:GetBucketPolicy s3:PutBucketPolicy",
        "aws_s3_bucket_public_access_block": "s3:GetBucketPublicAccessBlock s3:PutBucketPublicAccessBlock",
        "aws_s3_bucket_replication_configuration": "s3:GetReplicationConfiguration s3:PutReplicationConfiguration",
        "aws_s3_bucket_server_side_encryption_configuration": "s3:GetEncryptionConfiguration "
        "s3:PutEncryptionConfiguration",
        "aws_s3_bucket_versioning": "s3:GetBucketVersioning s3:PutBucketVersioning",
        "aws_security_group": "ec2:CreateSecurityGroup ec2:DeleteSecurityGroup ec2:DescribeNetworkInterfaces "
        f"ec2:DescribeSecurityGroups ec2:RevokeSecurityGroupEgress {_TAGS}",
        "aws_sqs_queue": "sqs:CreateQueue sqs:DeleteQueue sqs:GetQueueAttributes sqs:ListQueueTags "
        "sqs:SetQueueAttributes sqs:TagQueue sqs:UntagQueue",
        "aws_sqs_queue_policy": "sqs:GetQueueAttributes sqs:SetQueueAttributes",
        "aws_subnet": "ec2:CreateSubnet ec2:DeleteSubnet ec2:DescribeNetworkInterfaces ec2:DescribeSubnets "
        f"ec2:ModifySubnetAttribute {_TAGS}",
        "aws_vpc": "ec2:CreateVpc ec2:DeleteVpc ec2:DescribeVpcAttribute ec2:DescribeVpcs ec2:ModifyVpcAttribute "
        f"{_TAGS}",
        "aws_vpc_endpoint": "ec2:CreateVpcEndpoint ec2:DeleteVpcEndpoints ec2:DescribePrefixLists "
        f"ec2:DescribeVpcEndpoints ec2:ModifyVpcEndpoint route53:AssociateVPCWithHostedZone {_TAGS}",
        "aws_vpc_security_group_egress_rule": "ec2:AuthorizeSecurityGroupEgress ec2:RevokeSecurityGroupEgress "
        f"{_GROUP_RULE} {_TAGS}",
        "aws_vpc_security_group_ingress_rule": "ec2:AuthorizeSecurityGroupIngress ec2:RevokeSecurityGroupIngress "
        f"{_GROUP_RULE} {_TAGS}",
    }
)
"""Actions, separated by spaces."""

_NETWORK = "roles/compute.networkAdmin"
_PROJECT = "roles/resourcemanager.projectIamAdmin"
_ACCOUNTS = "roles/iam.serviceAccountAdmin roles/iam.serviceAccountUser"
_STORAGE = "roles/storage.admin"

GCP: Mapping[str, str] = MappingProxyType(
    {
        "data.google_container_cluster": "roles/container.viewer",
        "google_artifact_registry_repository": "roles/artifactregistry.admin",
        "google_compute_address": _NETWORK,
        "google_compute_network": _NETWORK,
        "google_compute_router": _NETWORK,
        "google_compute_router_nat": _NETWORK,
        "google_compute_subnetwork": _NETWORK,
        "google_container_cluster": "roles/container.admin roles/compute.viewer",
        "google_container_node_pool": "roles/container.admin",
        "google_kms_crypto_key_iam_member": "roles/cloudkms.admin",
        "google_project_iam_custom_role": "roles/iam.roleAdmin",
        "google_project_iam_member": _PROJECT,
        "google_service_account": _ACCOUNTS,
        "google_service_account_iam_member": _ACCOUNTS,
        "google_storage_bucket": _STORAGE,
        "google_storage_bucket_iam_member": _STORAGE,
    }
)
"""Predefined roles, separated by spaces."""
