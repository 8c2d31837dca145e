"""The address of a cluster in the controller's settings, at `clusters.NAME`: `kubeconfig: {secretName: cluster-east}`,
`kubeconfig: {file: /etc/east, context: admin}`, `eks: {name: training, region: us-west-2}` or
`gke: {project: ml, location: europe-west4, name: training}`."""

from __future__ import annotations

from pydantic import Field, model_validator

from spotladder.api.record import Record

DEFAULT_KEY = "kubeconfig"


class KubeconfigAddress(Record):
    """A kubeconfig: in a Secret beside the controller, or in a file."""

    secret_name: str | None = Field(default=None, min_length=1, description="A Secret in the controller's namespace.")
    key: str = Field(default=DEFAULT_KEY, min_length=1, description="The Secret's key that holds the kubeconfig.")
    file: str | None = Field(default=None, min_length=1, description="Or a file, for a controller outside of a pod.")
    context: str | None = Field(default=None, description="The context to use; default: the current one.")

    @model_validator(mode="after")
    def _one_of_both(self) -> KubeconfigAddress:
        if (self.secret_name is None) == (self.file is None):
            raise ValueError("needs exactly one of secretName and file")
        return self


class EksAddress(Record):
    """An EKS cluster of the account that the controller's identity, or the role, belongs to."""

    name: str = Field(min_length=1, description="The cluster's name.")
    region: str = Field(min_length=1, description="Its region, such as us-west-2.")
    role_arn: str | None = Field(default=None, description="A role to assume first, for a cluster of another account.")


class GkeAddress(Record):
    """A GKE cluster."""

    project: str = Field(min_length=1, description="The project's id.")
    location: str = Field(min_length=1, description="Its region or zone, such as europe-west4.")
    name: str = Field(min_length=1, description="The cluster's name.")


class ClusterAddress(Record):
    """How to reach a cluster: exactly one of the fields."""

    kubeconfig: KubeconfigAddress | None = Field(default=None, description="By a kubeconfig.")
    eks: EksAddress | None = Field(default=None, description="By its name in EKS.")
    gke: GkeAddress | None = Field(default=None, description="By its name in GKE.")

    @model_validator(mode="after")
    def _exactly_one(self) -> ClusterAddress:
        if sum(each is not None for each in (self.kubeconfig, self.eks, self.gke)) != 1:
            raise ValueError("needs exactly one of kubeconfig, eks and gke")
        return self
