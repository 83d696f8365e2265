"""The self-contained runtime that is mounted at /opt/osmosis in a sandbox."""

from harbor_backend.program.runtime.build import Runtime, build_runtime, prune
from harbor_backend.program.runtime.paths import CA_BUNDLE, MOUNT, PYTHON

__all__ = ["CA_BUNDLE", "MOUNT", "PYTHON", "Runtime", "build_runtime", "prune"]
