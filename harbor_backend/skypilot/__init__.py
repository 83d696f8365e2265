"""Trials in SkyPilot sandboxes: remote pods, reached through the SDK of SkyPilot's Platform."""

from harbor_backend.skypilot.errors import (
    ModelUnreachableError,
    SandboxCreationError,
    SkypilotError,
    SkypilotUnavailableError,
)

__all__ = [
    "ModelUnreachableError",
    "SandboxCreationError",
    "SkypilotError",
    "SkypilotUnavailableError",
]
