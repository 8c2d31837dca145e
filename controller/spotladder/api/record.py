"""The base class of the API models, and the metadata of Kubernetes objects."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from spotladder.api.fields import LabelKey, LabelValue, Name, PrivateText

API_VERSION = "spotladder.io/v1alpha1"

# Fields that Kubernetes sets. Files made from the output of `kubectl get -o yaml` contain them.
SET_BY_KUBERNETES = frozenset(
    {
        "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation",
        "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip


class Record(BaseModel):
    """A frozen model with camelCase field names in files. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class Metadata(Record):
    """Metadata of a Kubernetes object."""

    name: Name = Field(description="Name of the object: at most 63 lower-case letters, digits, '-'.")
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, description="Labels of the object.")
    annotations: dict[LabelKey, PrivateText] = Field(default_factory=dict, description="Annotations of the object.")

    @model_validator(mode="before")
    @classmethod
    def _drop_what_kubernetes_sets(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inner for key, inner in value.items() if key not in SET_BY_KUBERNETES}
        return value
