"""From a command line to a checked plan: all that can be refused is refused here."""

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from osmosis_ai.cli.errors import FAILED, USAGE, CliError, harbor_extra
from osmosis_ai.cli.trials.choices import EnvironmentName, Keep
from osmosis_ai.cli.trials.find import FoundTasks, find
from osmosis_ai.cli.trials.plan import Plan
from osmosis_ai.cli.trials.remote import REMOTE, make_remote

_EMBEDDED = "embedded/"
_MAX_TOLD = 3


def make_plan(
    tasks: str,
    *,
    registry_path: Path | None,
    registry_url: str | None,
    agent: str,
    grader: str | None,
    model: str | None,
    environment: EnvironmentName,
    options: Sequence[str],
    agent_base_url: str | None,
    agent_bind: str | None,
    n_concurrent: int,
    attempts: int,
    only: Sequence[str],
    threshold: float | None,
    keep: Keep,
    force_build: bool,
    output: Path | None,
) -> Plan:
    """Check a command line.

    Raises:
        CliError: something cannot work; the text says what, where, and the remedy.
    """
    from osmosis_ai.rollout.artifacts import artifact_root

    # Classes are named as they are for `python -m`: from the current directory.
    sys.path.insert(0, os.getcwd())
    if threshold is not None and not math.isfinite(threshold):
        raise CliError(f"--threshold {threshold} is not a finite number")
    remote = make_remote(environment, options, agent_base_url, agent_bind)
    if remote is not None and keep is not Keep.NONE:
        raise CliError(f"--keep {keep} is for sandboxes of this machine, not of {environment}")
    checked_model = _checked_model(model, agent)
    with harbor_extra("osmosis trials run"):
        found = find(tasks, only, registry_path, registry_url)
        problems = _problems(found, environment)
    return Plan(
        tasks_dir=found.folder,
        tasks=found.names,
        fetched=found.fetched,
        problems=problems,
        agent=agent,
        grader=grader,
        model=checked_model,
        environment=environment,
        remote=remote,
        n_concurrent=n_concurrent,
        attempts=attempts,
        threshold=threshold,
        keep=keep,
        force_build=force_build,
        output=artifact_root() if output is None else output.expanduser().absolute(),
        write_report=output is not None,
    )


def _problems(found: FoundTasks, environment: EnvironmentName) -> dict[str, Exception]:
    """Why tasks cannot run: each is reported as its trials' result, and the others run.

    Raises:
        CliError: not one can.
    """
    from harbor_backend import TaskError
    from harbor_backend.admin import check_task, needs_harbor

    problems = dict(found.problems)
    for name in found.names:
        if name in problems:
            continue
        path = found.path(name)
        try:
            config = check_task(path, needs_instruction=True)
            if environment in REMOTE and needs_harbor(config, path):
                raise TaskError(
                    f"{name} cannot run in {environment}, which runs one container per task with "
                    "or without a network: choose other tasks with --task"
                )
        except TaskError as exc:
            problems[name] = exc
    if len(problems) < len(found.names):
        return problems
    texts = list(dict.fromkeys(map(_one_line, problems.values())))
    more = f" (and {len(texts) - _MAX_TOLD} more)" if len(texts) > _MAX_TOLD else ""
    wrong = all(isinstance(exc, TaskError) for exc in problems.values())
    raise CliError("; ".join(texts[:_MAX_TOLD]) + more, USAGE if wrong else FAILED)


def _checked_model(model: str | None, agent: str) -> str | None:
    if model is None:
        return None
    if agent in {"oracle", "nop"}:
        raise CliError(
            f"--model is for workflows and agents with a model, and {agent!r} is native without"
        )
    if model.startswith(_EMBEDDED):
        from osmosis_ai.gateway.embedded import make_policy

        name, _, parameters = model.removeprefix(_EMBEDDED).partition("?")
        try:
            make_policy(name, parameters)
        except ValueError as exc:
            raise CliError(f"--model {model}: {_one_line(exc)}") from exc
        return model
    parts = urlsplit(model)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise CliError(
            f"--model {model} is neither the base URL of an OpenAI-compatible server (http://… or "
            "https://…) nor embedded/<policy>"
        )
    return model


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())
