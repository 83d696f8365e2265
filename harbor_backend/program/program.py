"""What a backend runs in its sandboxes: agent, grader, and the runtime that holds them."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor_backend.program.bundle import (
    BundleInfo,
    EntryPoints,
    build_bundle,
    entry_point_for,
    inspect_bundle,
    project_dir_for,
)
from harbor_backend.program.native_agents import ENDPOINTLESS, setup_for
from osmosis_ai.rollout.resolve import resolve_config, resolve_grader, resolve_workflow
from osmosis_ai.rollout.types.config import AgentWorkflowConfig, GraderConfig

if TYPE_CHECKING:
    from harbor_backend.program.runtime import Runtime


@dataclass(frozen=True)
class ProgramArguments:
    """The constructor arguments that say what to run, as they were passed."""

    agent: Any
    workflow_config: Any
    grader: Any
    grader_config: Any
    code_dir: Path | str | None
    bundle: Path | str | None


@dataclass
class Program:
    """An agent (native by name, or a workflow) and a grader, ready to be shipped."""

    native_agent: str | None
    entry_points: EntryPoints | None
    project: Path | None
    bundle: Path | None
    _runtime: "Runtime | None" = None
    _building: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def has_grader(self) -> bool:
        """Whether an SDK grader is wired in."""
        return self.entry_points is not None and self.entry_points.grader is not None

    @property
    def runs_inside(self) -> bool:
        """Whether what calls the model, if anything does, runs in the sandbox."""
        return self.native_agent is None or self.calls_model_inside

    @property
    def calls_model_inside(self) -> bool:
        """Whether the agent is a native one that calls its model from the sandbox."""
        native = self.native_agent
        return (
            native is not None
            and native not in ENDPOINTLESS
            and setup_for(native).runs == "sandbox"
        )

    @property
    def needs_runtime(self) -> bool:
        """Whether anything of ours runs in sandboxes: a workflow, a grader, or a probe."""
        return self.entry_points is not None or self.calls_model_inside

    async def runtime(self) -> "Runtime":
        """Return the runtime, built on first use off the event loop.

        Raises:
            ValueError: the project cannot be bundled.
            UvError: its build or its requirements fail; the text holds the last lines.
            RuntimeError: this host cannot build a runtime.
        """
        async with self._building:
            if self._runtime is None:
                self._runtime = await asyncio.to_thread(self._build)
            return self._runtime

    def close(self) -> None:
        """Let the runtime be pruned."""
        if self._runtime is not None:
            self._runtime.close()
            self._runtime = None

    def _build(self) -> "Runtime":
        from harbor_backend.program.runtime import build_runtime

        bundle = self.bundle
        if bundle is None and self.project is not None and self.entry_points is not None:
            bundle = build_bundle(self.project, entry_points=self.entry_points)
        return build_runtime(bundle)


def make_program(given: ProgramArguments) -> Program:
    """Check the arguments and say what is to be built; nothing is built yet.

    Raises:
        ValueError: no agent, a native agent that is unknown or takes no
            endpoint of ours, a bundle without a runner, or an object that
            cannot be named inside a bundle.
        TypeError, ImportError: a class or config does not resolve.
    """
    native = _native_agent(given.agent)
    if given.bundle is not None:
        return _from_bundle(given, native)
    if given.agent is None:
        raise ValueError(
            "agent=None: name a native Harbor agent ('terminus-2'), or pass an AgentWorkflow "
            "class, its 'module:Class' string, or a prebuilt bundle="
        )
    workflow = None if native else resolve_workflow(given.agent)
    if native and given.workflow_config is not None:
        raise ValueError(f"workflow_config= belongs to a workflow; agent={native!r} is native")
    config = resolve_config(given.workflow_config, AgentWorkflowConfig, "workflow_config")
    grader = resolve_grader(given.grader)
    grader_config = resolve_config(given.grader_config, GraderConfig, "grader_config")
    if workflow is None and grader is None:
        return Program(native, None, None, None)
    project = project_dir_for(given.code_dir or workflow or grader or "")
    named = {
        "agent": workflow,
        "workflow_config": config,
        "grader": grader,
        "grader_config": grader_config,
    }
    entry_points = EntryPoints(
        **{
            name: None if value is None else entry_point_for(value, project)
            for name, value in named.items()
        }
    )
    return Program(native, entry_points, project, None)


def _native_agent(agent: object) -> str | None:
    if not isinstance(agent, str) or ":" in agent:
        return None
    from harbor.models.agent.name import AgentName

    known = sorted(name.value for name in AgentName)
    if agent not in known:
        raise ValueError(
            f"agent={agent!r} is no registered native agent; known are {', '.join(known)}. A "
            "workflow is named as 'module:Class'"
        )
    if agent not in ENDPOINTLESS:
        setup_for(agent)
    return agent


def _from_bundle(given: ProgramArguments, native: str | None) -> Program:
    wheel = Path(given.bundle or "").expanduser()
    if not wheel.is_file():
        raise ValueError(f"bundle={str(given.bundle)!r} is not a file")
    for name in ("workflow_config", "grader_config", "grader"):
        if getattr(given, name) is not None and native is None:
            raise ValueError(f"{name}= is part of the bundle; do not pass it beside bundle=")
    info = inspect_bundle(wheel)
    if info.runner is None or (native is None and info.agent is None):
        raise ValueError(
            f"bundle={str(wheel)!r} has no runner for an agent; build it with "
            "osmosis_ai.packaging.build_bundle"
        )
    return Program(native, _entry_points(info), None, wheel)


def _entry_points(info: BundleInfo) -> EntryPoints:
    return EntryPoints(info.agent, info.workflow_config, info.grader, info.grader_config)
