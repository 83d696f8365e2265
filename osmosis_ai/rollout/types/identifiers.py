"""The type of a rollout's id in requests and results."""

from typing import Annotated

from pydantic import AfterValidator

from osmosis_ai.common.identifiers import ensure_single_path_segment

type RolloutId = Annotated[str, AfterValidator(ensure_single_path_segment)]
