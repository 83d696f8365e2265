"""A workflow that reports what its interpreter looks like."""

import gc
import importlib.util
import json
import os
import random
import signal
import sys
from typing import Any

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext

seen: list[str] = []


class Looks(AgentWorkflow[AgentWorkflowConfig]):
    """Its only message is what it saw, as JSON."""

    async def run(self, ctx: AgentWorkflowContext[AgentWorkflowConfig]) -> Any:
        """Look around."""
        seen.append(ctx.prompt[0]["content"])
        facts = {
            "argv": sys.argv[1:3],
            "path": sys.path,
            "supervisor": importlib.util.find_spec("supervisor") is not None
            or "supervisor" in sys.modules,
            "host_environment": "OSMOSIS_TEST_OF_HOST" in os.environ,
            "given": os.environ.get("GIVEN"),
            "signals": [
                str(signal.getsignal(signal.SIGPIPE)),
                str(signal.getsignal(signal.SIGCHLD)),
            ],
            "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            "collects": gc.isenabled(),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "folder": os.getcwd(),
            "seen": seen,
        }
        print("printed")
        print("complained", file=sys.stderr)
        return [
            *ctx.prompt,
            {"role": "assistant", "content": json.dumps(facts)},
            {"role": "assistant", "content": str(random.random())},
        ]


class Exits(AgentWorkflow[AgentWorkflowConfig]):
    """Ends its process."""

    async def run(self, ctx: AgentWorkflowContext[AgentWorkflowConfig]) -> Any:
        """Leave without a result."""
        os._exit(7)
