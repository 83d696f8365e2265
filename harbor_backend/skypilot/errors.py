"""What goes wrong between this process and SkyPilot."""


class SkypilotError(RuntimeError):
    """SkyPilot did not do what it was asked for."""


class SkypilotUnavailableError(SkypilotError):
    """SkyPilot cannot be used from here; the text says which part is missing, and the remedy."""


class SandboxCreationError(SkypilotError):
    """No sandbox came of a creation."""


class ModelUnreachableError(SkypilotError):
    """The sandbox does not reach the gateway; the text names the hop that failed."""
