"""What goes wrong with hosts. All of it is infrastructure, never the agent's fault."""

from harbor_backend.errors import HarborBackendError, SandboxLostError


class HostLostError(SandboxLostError):
    """A host, its engine or the connection to it went away under a sandbox."""


class NoHostError(HarborBackendError, RuntimeError):
    """No host of the fleet can be used now."""


class HostRefusedError(HarborBackendError, RuntimeError):
    """A host answers, and cannot serve: the text says what it lacks."""
