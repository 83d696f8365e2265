"""What stands in a job's configuration where Harbor expects an agent's class."""

from typing import Any, NoReturn

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.verifier.base import BaseVerifier

from harbor_backend.jobs.values import WORKFLOW
from osmosis_ai import __version__


class StandIn(BaseAgent):
    """A workflow in a job that Harbor opens: it can be read, compared and regraded.

    It cannot be run by Harbor's command alone, which has neither the workflow's
    project nor a gateway to its model.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "This job's agent is a workflow, which `osmosis trials run` runs and Harbor's command "
            "alone cannot. Run the tasks that are missing with `osmosis trials run`, `--task` and "
            "this job's directory as `--output`: it adds them to the job"
        )

    @staticmethod
    def name() -> str:
        """The name under which workflows run."""
        return WORKFLOW

    def version(self) -> str:
        """The version of the SDK."""
        return str(__version__)

    async def setup(self, environment: BaseEnvironment) -> NoReturn:
        """Never called: none can be made."""
        raise NotImplementedError

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> NoReturn:
        """Never called: none can be made."""
        raise NotImplementedError


class GraderStandIn(BaseVerifier):
    """An SDK grader in a job that Harbor opens; like the workflow, it cannot be run there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "This job is graded by an SDK grader, which `osmosis trials run` runs and Harbor's "
            "command alone cannot"
        )

    async def verify(self) -> NoReturn:
        """Never called: none can be made."""
        raise NotImplementedError
