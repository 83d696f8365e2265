"""The exception family of this package."""


class BaseImageError(RuntimeError):
    """The base image cannot be had; the message says why and what to do about it."""
