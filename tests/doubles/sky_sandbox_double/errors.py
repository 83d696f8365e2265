"""The double's exceptions. The real SDK's are not documented: callers must not know these."""


class SandboxError(Exception):
    """A request was refused, or failed."""


class SandboxConnectionError(SandboxError):
    """The connection to the server, or to a sandbox, was lost."""
