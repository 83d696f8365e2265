"""An agent that runs one shell script in its sandbox, for submissions that must not pass."""

from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext


class ScriptAgent(BaseAgent):
    """Runs the `script` that its keyword arguments hold.

    Raises:
        RuntimeError: the script ended with another exit code than 0.
    """

    capabilities = AgentCapabilities()

    def __init__(self, logs_dir: Path, *, script: str, **settings: Any) -> None:
        super().__init__(logs_dir, **settings)
        self.script = script

    @staticmethod
    def name() -> str:
        return "script"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing has to be installed."""

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        done = await environment.exec(self.script)
        if done.return_code != 0:
            raise RuntimeError(f"the script failed: {done.stdout}{done.stderr}")
