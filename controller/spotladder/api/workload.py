"""The workload of a TieredJob: one field for each kind in the registry (see `workload_kinds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import Field, create_model, model_validator

from spotladder.api.fields import refused
from spotladder.api.record import Record
from spotladder.api.workload_kinds import KINDS, enumerated, loaded

T = TypeVar("T", bound=Record)

if TYPE_CHECKING:
    _Fields = Record
else:
    _Fields = create_model(
        "_Fields",
        __base__=Record,
        **{
            kind.field: (loaded(kind.schema) | None, Field(default=None, description=kind.description))
            for kind in KINDS
        },
    )


class Workload(_Fields):
    """Program of the job: exactly one of the fields."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Workload:
        if sum(getattr(self, kind.field) is not None for kind in KINDS) != 1:
            raise refused(f"needs exactly one of {enumerated()}")
        return self

    @property
    def kind(self) -> str:
        """The field that is set, as in files: `ray`, `jobSet`."""
        return next(kind.alias for kind in KINDS if getattr(self, kind.field) is not None)

    @property
    def chosen(self) -> Record:
        """The value of the field that is set."""
        given: Record = next(value for kind in KINDS if (value := getattr(self, kind.field)) is not None)
        return given

    def of(self, model: type[T]) -> T | None:
        """The workload, if it is of the kind with this model."""
        return self.chosen if isinstance(self.chosen, model) else None
