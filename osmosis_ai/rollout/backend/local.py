"""Documented import path of ``LocalBackend``."""

from local_backend import LocalBackend

__all__ = ["LocalBackend"]
