"""What charts and templates of other projects have that no Go module contains, as dated lists of names.

A pin that changes makes the test of the list fail: compare the list with the same file of the new version.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChartValues:
    """The names of all values of a chart at one version; below a name that is listed, every name is allowed."""

    version: str
    source: str
    listed: str

    @property
    def names(self) -> list[str]:
        return self.listed.split()


CHART_VALUES = {
    "kuberay": ChartValues(
        "1.6.1",
        "ray-project/kuberay, helm-chart/kuberay-operator/values.yaml at v1.6.1 (2026-04-23)",
        """
        affinity annotations batchScheduler.enabled batchScheduler.name componentOverride
        configuration.defaultContainerEnvs configuration.enabled configuration.headSidecarContainers
        configuration.workerSidecarContainers crNamespacedRbacEnable env featureGates fullnameOverride
        image.pullPolicy image.repository image.tag imagePullSecrets kubeClient.burst kubeClient.qps labels
        leaderElectionEnabled livenessProbe logging.baseDir logging.fileEncoder logging.fileName logging.sizeLimit
        logging.stdoutEncoder metrics.enabled metrics.serviceMonitor.enabled metrics.serviceMonitor.honorLabels
        metrics.serviceMonitor.interval metrics.serviceMonitor.namespace metrics.serviceMonitor.selector
        nameOverride nodeSelector operatorCommand podSecurityContext priorityClassName rbacEnable readinessProbe
        reconcileConcurrency replicas resources securityContext service.port service.type serviceAccount.create
        serviceAccount.name singleNamespaceInstall tolerations
        """,
    ),
    "efa-device-plugin": ChartValues(
        "v0.5.30",
        "aws/eks-charts, stable/aws-efa-k8s-device-plugin/values.yaml at bfe91c4 (2026-07-21)",
        """
        additionalPodAnnotations additionalPodLabels fullnameOverride image.repository image.tag imagePullSecrets
        nameOverride nodeSelector resources securityContext supportedInstanceLabels.keys
        supportedInstanceLabels.values tolerations updateStrategy.type
        """,
    ),
    "neuron-device-plugin": ChartValues(
        "1.9.0",
        "aws-neuron/neuron-helm-charts, charts/neuron-helm-chart/values.yaml at b77a6f9 (2026-07-10)",
        """
        devicePlugin.affinity devicePlugin.enabled devicePlugin.env devicePlugin.image.pullPolicy
        devicePlugin.image.repository devicePlugin.image.tag devicePlugin.imagePullSecrets
        devicePlugin.nodeSelector devicePlugin.podAnnotations devicePlugin.priorityClassName
        devicePlugin.resources devicePlugin.securityContext devicePlugin.serviceAccount devicePlugin.tolerations
        devicePlugin.updateStrategy draDriver neuronInstances npd.enabled npd.nodeRecovery npd.tolerations
        scheduler.enabled scheduler.customScheduler scheduler.defaultScheduler ultraserverOperator
        """,
    ),
    "karpenter": ChartValues(
        "0.5.0",
        "cloudpilot-ai/karpenter-provider-gcp, charts/karpenter/values.yaml at v0.5.0 (2026-07-06)",
        """
        additionalAnnotations controller.affinity controller.disableControllerWarmup controller.env
        controller.featureGates.nodeOverlay controller.featureGates.nodeRepair
        controller.featureGates.reservedCapacity controller.featureGates.spotToSpotConsolidation
        controller.featureGates.staticCapacity controller.healthProbe.port controller.image.pullPolicy
        controller.image.repository controller.image.tag controller.metrics.port controller.priorityClassName
        controller.replicaCount controller.resources controller.revisionHistoryLimit
        controller.settings.batchIdleDuration controller.settings.batchMaxDuration
        controller.settings.clusterLocation controller.settings.clusterName
        controller.settings.defaultNodePoolTemplateName controller.settings.defaultNodepoolServiceAccount
        controller.settings.ignoreDRARequests controller.settings.nodeLocation controller.settings.projectID
        controller.settings.vmMemoryOverheadPercent controller.strategy controller.terminationGracePeriodSeconds
        controller.tolerations credentials.enabled credentials.secretKey credentials.secretName fullnameOverride
        imagePullSecrets logErrorOutputPaths logLevel logOutputPaths nameOverride podAnnotations
        podDisruptionBudget.maxUnavailable podDisruptionBudget.minAvailable podLabels podSecurityContext
        securityContext serviceAccount.annotations serviceAccount.automount serviceAccount.create
        serviceAccount.name serviceMonitor
        """,
    ),
}
"""By component; `karpenter` is that of Google Cloud."""

KARPENTER_POLICY_OF = "1.15"
"""The minor version of Karpenter whose template KARPENTER_STATEMENTS lists: aws/karpenter-provider-aws,
website/content/en/v1.15/reference/cloudformation.md at d77d1a3 (read on 2026-11-30)."""

_LAUNCH = "ec2:RunInstances ec2:CreateFleet"
_CREATED = "fleet instance volume network-interface launch-template spot-instances-request"
_OWN = (
    "StringEquals aws:ResourceTag/kubernetes.io/cluster/east=owned",
    "StringLike aws:ResourceTag/karpenter.sh/nodepool=*",
)
_NEW = (
    "StringEquals aws:RequestTag/kubernetes.io/cluster/east=owned",
    "StringEquals aws:RequestTag/eks:eks-cluster-name=east",
    "StringLike aws:RequestTag/karpenter.sh/nodepool=*",
)

KARPENTER_STATEMENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (_LAUNCH, "image snapshot security-group subnet capacity-reservation placement-group", ()),
    (_LAUNCH, "launch-template", _OWN),
    (f"{_LAUNCH} ec2:CreateLaunchTemplate", _CREATED, _NEW),
    (
        "ec2:CreateTags",
        _CREATED,
        (*_NEW, "StringEquals ec2:CreateAction=RunInstances|CreateFleet|CreateLaunchTemplate"),
    ),
    (
        "ec2:CreateTags",
        "instance",
        (
            *_OWN,
            "StringEqualsIfExists aws:RequestTag/eks:eks-cluster-name=east",
            "ForAllValues:StringEquals aws:TagKeys=eks:eks-cluster-name|karpenter.sh/nodeclaim|Name",
        ),
    ),
    ("ec2:TerminateInstances ec2:DeleteLaunchTemplate", "instance launch-template", _OWN),
    (
        """
        ec2:DescribeCapacityReservations ec2:DescribeImages ec2:DescribeInstances ec2:DescribeInstanceStatus
        ec2:DescribeInstanceTypeOfferings ec2:DescribeInstanceTypes ec2:DescribeLaunchTemplates
        ec2:DescribePlacementGroups ec2:DescribeSecurityGroups ec2:DescribeSpotPriceHistory ec2:DescribeSubnets
        """,
        "*",
        ("StringEquals aws:RequestedRegion=us-east-1",),
    ),
    ("ssm:GetParameter", "parameter/aws/service", ()),
    ("pricing:GetProducts iam:ListInstanceProfiles", "*", ()),
    ("iam:GetInstanceProfile", "instance-profile", ()),
    ("iam:PassRole", "role", ("StringEquals iam:PassedToService=ec2.amazonaws.com|ec2.amazonaws.com.cn",)),
    ("eks:DescribeCluster", "cluster", ()),
    ("sqs:DeleteMessage sqs:GetQueueUrl sqs:ReceiveMessage", "queue", ()),
)
"""Actions, kinds of resources and conditions of each statement for a cluster `east` in us-east-1. The template also
allows the actions of `NOT_CALLED` in test_upstream that Karpenter needs to create instance profiles, to reboot nodes
and to read the state of zonal shifts, which are off."""

KARPENTER_EVENTS = {
    ("aws.health", "AWS Health Event"),
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""Source and detail type of the rules of the same template that write to the queue of interruptions."""

KARPENTER_ROLE_OF_GCP = """
    compute.disks.create compute.images.get compute.images.list compute.instanceGroupManagers.get
    compute.instanceTemplates.get compute.instanceTemplates.list compute.instances.create compute.instances.delete
    compute.instances.get compute.instances.list compute.instances.setLabels compute.instances.setMetadata
    compute.instances.setServiceAccount compute.instances.setTags compute.machineTypes.list compute.networks.get
    compute.projects.get compute.regions.get compute.subnetworks.get compute.subnetworks.use
    compute.subnetworks.useExternalIp compute.zoneOperations.get compute.zones.list container.clusters.get
    container.clusters.list container.clusters.update
"""
"""The permissions of the role that cloudpilot-ai/karpenter-provider-gcp publishes at v0.5.0 (2026-07-06) in
deploy/iam/karpenter-controller-role.yaml."""
