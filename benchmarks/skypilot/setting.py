"""What both scripts need around them: an API server, a registry, and the no-op project."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.harbor_backend.places.skypilot.with_sky.servers import api_server, registry

ROOT = Path(__file__).parents[2]
NOOP = ROOT / "benchmarks" / "projects" / "noop"
TEMPLATE = ROOT / "tasks" / "multiply"


@contextmanager
def setting(artifacts: str) -> Iterator[str]:
    """Set this process and its children up; yields the registry."""
    from sky.server import common

    os.environ["SKYPILOT_DISABLE_USAGE_COLLECTION"] = "1"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="osmosis-sky-")))
        os.environ[artifacts] = str(folder / "rollouts")
        os.environ["SKYPILOT_API_COOKIE_FILE"] = str(folder / "cookies")
        os.environ["SKYPILOT_API_SERVER_ENDPOINT"] = stack.enter_context(api_server())
        common.get_server_url.cache_clear()
        sys.path.insert(0, str(NOOP))
        yield stack.enter_context(registry(folder))
