"""The address of a cluster in the controller's settings or in a flag.

| settings (`clusters.NAME`) | flag (`--member-cluster NAME=…`) |
|---|---|
| `kubeconfig: {secretName: cluster-east}` | `secret:cluster-east` |
| `kubeconfig: {file: /etc/east, context: admin}` | `kubeconfig:/etc/east#admin` |
| `eks: {name: training, region: us-west-2}` | `eks:us-west-2/training` |
| `gke: {project: ml, location: europe-west4, name: training}` | `gke:ml/europe-west4/training` |
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from spotladder.errors import InvalidSpec

DEFAULT_KEY = "kubeconfig"


class _AddressPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class KubeconfigAddress(_AddressPart):
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


class EksAddress(_AddressPart):
    """An EKS cluster of the account that the controller's identity, or the role, belongs to."""

    name: str = Field(min_length=1, description="The cluster's name.")
    region: str = Field(min_length=1, description="Its region, such as us-west-2.")
    role_arn: str | None = Field(default=None, description="A role to assume first, for a cluster of another account.")


class GkeAddress(_AddressPart):
    """A GKE cluster."""

    project: str = Field(min_length=1, description="The project's id.")
    location: str = Field(min_length=1, description="Its region or zone, such as europe-west4.")
    name: str = Field(min_length=1, description="The cluster's name.")


class ClusterAddress(_AddressPart):
    """How to reach a cluster: exactly one of the fields."""

    kubeconfig: KubeconfigAddress | None = Field(default=None, description="By a kubeconfig.")
    eks: EksAddress | None = Field(default=None, description="By its name in EKS.")
    gke: GkeAddress | None = Field(default=None, description="By its name in GKE.")

    @model_validator(mode="after")
    def _exactly_one(self) -> ClusterAddress:
        if sum(each is not None for each in (self.kubeconfig, self.eks, self.gke)) != 1:
            raise ValueError("needs exactly one of kubeconfig, eks and gke")
        return self


def parse_flag(text: str) -> tuple[str, ClusterAddress]:
    """The name and the address in a `--member-cluster` flag. Raises InvalidSpec."""
    name, equals, found = text.partition("=")
    kind, colon, rest = found.partition(":")
    parts = rest.split("/")
    if name and equals and colon and all(parts[1:]) and rest:
        if kind == "secret" and len(parts) == 1:
            return name, ClusterAddress(kubeconfig=KubeconfigAddress(secret_name=rest))
        if kind == "kubeconfig":
            file, _, context = rest.partition("#")
            return name, ClusterAddress(kubeconfig=KubeconfigAddress(file=file, context=context or None))
        if kind == "eks" and len(parts) == 2:
            return name, ClusterAddress(eks=EksAddress(region=parts[0], name=parts[1]))
        if kind == "gke" and len(parts) == 3:
            return name, ClusterAddress(gke=GkeAddress(project=parts[0], location=parts[1], name=parts[2]))
    raise InvalidSpec(
        "use NAME=secret:SECRET, NAME=kubeconfig:FILE#CONTEXT, NAME=eks:REGION/NAME or NAME=gke:PROJECT/LOCATION/NAME",
        path=f"--member-cluster {text}",
    )
