"""Configuration objects of workflows and graders."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ConcurrencyConfig(BaseModel):
    """How many executions may run at once; ``None`` is unlimited."""

    max_concurrent: Annotated[int, Field(ge=1)] | None = None


class BaseConfig(BaseModel):
    """A named configuration that may carry anything else a user adds.

    Fields may hold models, tools and other live objects; every run gets a deep
    copy of the instance that was wired into the backend.
    """

    model_config = ConfigDict(extra="allow", validate_assignment=True, arbitrary_types_allowed=True)

    name: str
    description: str | None = None


class AgentWorkflowConfig(BaseConfig):
    """Configuration of an ``AgentWorkflow``."""

    concurrency: ConcurrencyConfig = ConcurrencyConfig()


class GraderConfig(BaseConfig):
    """Configuration of a ``Grader``; its concurrency limit is independent."""

    concurrency: ConcurrencyConfig = ConcurrencyConfig()
