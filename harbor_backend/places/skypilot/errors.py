"""What goes wrong between this process and SkyPilot."""

from harbor_backend.errors import HarborBackendError


class SkypilotError(HarborBackendError, RuntimeError):
    """SkyPilot did not do what it was asked for."""


class SkypilotUnavailableError(SkypilotError):
    """SkyPilot cannot be used from here; the text says which part is missing, and the remedy."""


class SandboxCreationError(SkypilotError):
    """No sandbox came of a creation."""
