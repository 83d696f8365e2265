"""The bundle of a user's rollout project: a wheel that names what a sandbox is to run."""

from harbor_backend.program.bundle.build import build_bundle
from harbor_backend.program.bundle.entry_points import EntryPoints, entry_point_for, module_in
from harbor_backend.program.bundle.inspection import RUNNER_MODULE, BundleInfo, inspect_bundle
from harbor_backend.program.bundle.project import project_dir_for
from harbor_backend.program.bundle.uv import UvError

__all__ = [
    "RUNNER_MODULE",
    "BundleInfo",
    "EntryPoints",
    "UvError",
    "build_bundle",
    "entry_point_for",
    "inspect_bundle",
    "module_in",
    "project_dir_for",
]
