"""Runs agent workflows and Harbor tasks in isolated sandboxes and returns graded samples."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("osmosis-ai")
except PackageNotFoundError:  # a source tree on sys.path that nobody installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
