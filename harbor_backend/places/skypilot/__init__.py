"""SkyPilot's sandboxes: remote pods, reached through the SDK of SkyPilot's Platform."""

from harbor_backend.places.skypilot.errors import (
    SandboxCreationError,
    SkypilotError,
    SkypilotUnavailableError,
)

__all__ = ["SandboxCreationError", "SkypilotError", "SkypilotUnavailableError"]
