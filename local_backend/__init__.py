"""LocalBackend: workflow and grader in this process."""

from local_backend.backend import LocalBackend

__all__ = ["LocalBackend"]
