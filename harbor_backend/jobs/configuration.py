"""A job's configuration, as Harbor itself would have been told to run it.

Its own commands read it: ``job resume`` compares every trial with it. Nothing secret
goes in, and nothing that is known to the engine's process only.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harbor.models.agent.name import AgentName
from harbor.models.job.config import JobConfig
from harbor.models.trial.config import AgentConfig, TrialConfig, VerifierConfig

from harbor_backend.jobs.values import JobDescription, JobTask

_STAND_IN = "harbor_backend.jobs.stand_in:StandIn"
_GRADER = "harbor_backend.jobs.stand_in:GraderStandIn"

EXPORTABLE = AgentName.ACP.value
"""The agent that a workflow's ``result.json`` names in its configuration.

``harbor traces export`` goes by that name, and refuses every name that is not an agent
of Harbor's with trajectories; this is its general one. Viewers and statistics go by
``agent_info``, which holds the workflow's own name, as ``config.json`` does.
"""


def job_config(directory: Path, about: JobDescription, tasks: Sequence[JobTask]) -> JobConfig:
    """The configuration of a job whose trials are of these tasks, one each."""
    distinct, attempts = _spread(tasks)
    return JobConfig(
        job_name=directory.name,
        jobs_dir=directory.parent,
        n_attempts=attempts,
        n_concurrent_trials=about.n_concurrent,
        agents=[_agent(about)],
        environment=about.environment,
        verifier=_verifier(about),
        tasks=[task.config for task in distinct],
        # Whoever opens a finished job need not have the keys that it was run with.
        skip_credential_checks=True,
    )


def exportable(config: TrialConfig) -> TrialConfig:
    """A trial's configuration as ``result.json`` holds it; see ``EXPORTABLE``."""
    if config.agent.import_path != _STAND_IN:
        return config
    agent = AgentConfig(name=EXPORTABLE, kwargs={"stands_for": config.agent.name})
    return config.model_copy(update={"agent": agent})


def _spread(tasks: Sequence[JobTask]) -> tuple[list[JobTask], int]:
    """The tasks, and how many attempts each has; a task several times where these differ."""
    keyed = {(task.path, task.source): task for task in tasks}
    counts = Counter((task.path, task.source) for task in tasks)
    if len(set(counts.values())) == 1:
        return list(keyed.values()), next(iter(counts.values()))
    return [task for key, task in keyed.items() for _ in range(counts[key])], 1


def _agent(about: JobDescription) -> AgentConfig:
    url = None if about.model_url is None else _without_secrets(about.model_url)
    if about.is_native:
        return AgentConfig(name=about.agent, model_name=about.model, base_url=url)
    kwargs = {} if url is None else {"model_url": url}
    return AgentConfig(
        name=about.agent, import_path=_STAND_IN, model_name=about.model, kwargs=kwargs
    )


def _verifier(about: JobDescription) -> VerifierConfig:
    if about.grader is None:
        return VerifierConfig()
    return VerifierConfig(import_path=_GRADER, kwargs={"grader": about.grader})


def _without_secrets(url: str) -> str:
    """The URL without a user, a query or a fragment, where some servers take a key."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
