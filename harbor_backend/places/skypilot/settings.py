"""What a caller may say about SkyPilot in ``EnvironmentConfig(type="skypilot", kwargs={…})``."""

import os
import platform
import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harbor_backend.places.skypilot.names import checked_label

REGISTRY_ENV = "HARBOR_SKYPILOT_REGISTRY"
_REGISTRY = re.compile(r"[a-z0-9.-]+(?::\d+)?(?:/[a-z0-9._/-]+)?", re.IGNORECASE)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "AMD64": "amd64"}


class PoolSpec(BaseModel):
    """A warm pool as it should be: its sandboxes' image and shape, and how many are kept ready."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: str
    replicas: Annotated[int, Field(ge=0, le=10_000)]
    cpus: Annotated[float, Field(gt=0)] | None = None
    memory_gb: Annotated[float, Field(gt=0)] | None = None


class SkypilotSettings(BaseModel):
    """Where sandboxes come from and where they run.

    ``registry`` (or ``HARBOR_SKYPILOT_REGISTRY``): where images built for tasks
    are pushed; ``pool``: the warm pool that sandboxes are claimed from;
    ``ensure_pool``: make that pool, or give it this size, at prewarm;
    ``context_name``, ``namespace``: the cluster's; ``secrets``: names in the
    platform's secrets manager; ``platform``: the pods' processor.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    registry: str | None = None
    pool: str | None = None
    context_name: str | None = None
    namespace: str | None = None
    secrets: list[str] | None = None
    platform: str = "linux/amd64"
    ensure_pool: PoolSpec | None = None

    @classmethod
    def of(cls, kwargs: Mapping[str, Any]) -> Self:
        """Read an environment configuration's ``kwargs``.

        Raises:
            ValueError: one is unknown or wrong; the text names it, its value and the remedy.
        """
        given = dict(kwargs)
        if not given.get("registry"):
            given["registry"] = os.environ.get(REGISTRY_ENV) or None
        try:
            return cls.model_validate(given)
        except ValidationError as exc:
            problems = "; ".join(_described(error) for error in exc.errors())
            raise ValueError(f"environment_config.kwargs for skypilot: {problems}") from exc

    @field_validator("registry")
    @classmethod
    def _registry(cls, value: str | None) -> str | None:
        if value is not None and _REGISTRY.fullmatch(value.rstrip("/")) is None:
            raise ValueError("must be a registry's host and path, such as 'ghcr.io/team'")
        return None if value is None else value.rstrip("/")

    @field_validator("pool")
    @classmethod
    def _pool(cls, value: str | None) -> str | None:
        return None if value is None else checked_label(value, "pool")

    @field_validator("platform")
    @classmethod
    def _platform(cls, value: str) -> str:
        own = f"linux/{_MACHINES.get(platform.machine(), platform.machine())}"
        if value != own:
            raise ValueError(
                f"must be {own!r}: sandboxes run this machine's own interpreter, so run the "
                "engine on a machine with the pods' processor"
            )
        return value

    @model_validator(mode="after")
    def _pool_named(self) -> Self:
        if self.ensure_pool is not None and self.pool is None:
            raise ValueError("ensure_pool needs pool=, the name of the pool to make")
        return self


def _described(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"]) or "they"
    if error["type"] == "extra_forbidden":
        known = ", ".join(SkypilotSettings.model_fields)
        return f"unknown key {field!r}; known are {known}"
    return f"{field}={error['input']!r}: {error['msg'].removeprefix('Value error, ')}"
