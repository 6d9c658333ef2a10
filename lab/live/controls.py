"""What a visitor of the live page may set.

Values are frozen. A request is taken whole or not at all.
"""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

LAG_MS, DUPLICATES_PERCENT = 400, 10  # from the first cut on


class BadControl(ValueError):
    """A control cannot be set so. Nothing was changed. The message says what may be given."""


class Controls(BaseModel):
    """lag_ms: what an item takes to the other Region, on average. duplicates_percent: how many
    changes come again.

    writes_per_s: new changes of both Regions together. cut: the Regions cannot reach each other.
    By default nothing goes wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    lag_ms: Annotated[int, Field(ge=0, le=5_000)] = 0
    duplicates_percent: Annotated[int, Field(ge=0, le=50)] = 0
    writes_per_s: Annotated[int, Field(ge=0, le=20)] = 6
    cut: bool = False
    paused: bool = False

    @property
    def calm(self) -> bool:
        """Whether nothing is late, sent again or held up."""
        return not (self.lag_ms or self.duplicates_percent or self.cut)

    def troubled(self) -> Self:
        """These controls with lag and duplicates, as far as a visitor has set none."""
        return self.model_copy(
            update={
                "lag_ms": self.lag_ms or LAG_MS,
                "duplicates_percent": self.duplicates_percent or DUPLICATES_PERCENT,
            }
        )

    def with_(self, given: object) -> Self:
        """These controls with what a request asks for. Raises BadControl."""
        if not isinstance(given, dict) or not given:
            raise BadControl('Give an object such as {"lag_ms": 400}.')
        try:
            return self.model_validate(self.model_dump() | given)
        except ValidationError as error:
            raise BadControl(
                "; ".join(f"{each['loc'][0]!a}: {each['msg']}" for each in error.errors())
            ) from None
