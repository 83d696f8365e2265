"""The Harbor verifier that runs a task's own tests, and trusts nothing that they leave."""

import asyncio
import time
from typing import Any

from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
from harbor.models.trial.paths import EnvironmentPaths
from harbor.models.trial.result import ExceptionInfo
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.verifier import (
    DownloadVerifierDirError,
    RewardFileNotFoundError,
    Verifier,
)

from harbor_backend.core.trial import Trial, find_trial
from harbor_backend.errors import HarborBackendError
from harbor_backend.places.plain_file import read_end
from harbor_backend.places.sandbox import Role, Sights, sandbox_of
from harbor_backend.trial.integrity import integrity, worse
from harbor_backend.trial.rewards import (
    NO_REWARD_FILE,
    Rewards,
    read_reward_json,
    read_reward_text,
)

_KEEP_SEC = 30.0
"""How long the output of tests that were ended may take to fetch."""
_SHOWN_BYTES = 1500


class TaskVerifier(Verifier):
    """Harbor's own verifier, but for three things.

    - A reward file is a regular file of a bounded size, or this trial alone
      fails; nothing else is opened, waited for or loaded.
    - What tests printed that were ended is fetched while their sandbox lives.
    - Tests that leave more than is fetched keep their reward.
    """

    def __init__(
        self, *, trial_key: str, task: Task, step_name: str | None = None, **kwargs: Any
    ) -> None:
        # Harbor does not tell a verifier by import path whether the image has the tests already.
        kwargs.setdefault("skip_tests_upload", _image_has_tests(task, step_name))
        super().__init__(task=task, step_name=step_name, **kwargs)
        self._trial = _trial(trial_key)
        self._inside = EnvironmentPaths.for_os(self.environment.os)

    async def verify(self) -> VerifierResult:
        """Run the tests and read their reward.

        Raises:
            VerifierOutputParseError, RewardFileEmptyError, RewardFileNotFoundError:
                they left no reward that can be used.
        """
        try:
            return await self._verified()
        except Exception as exc:  # Harbor keeps the agent's alone, where that failed, too
            if self._trial is not None:
                self._trial.results.verifier_error = ExceptionInfo.from_exception(exc)
            raise

    async def _look(self, trial: Trial) -> None:
        """Note what of the agent is left where the tests run. Raises nothing."""
        sandbox = sandbox_of(self.environment, trial, Role.AGENT)
        if sandbox.role is not Role.AGENT:
            return
        began = trial.agent_began
        sights = None
        try:
            if began is not None:
                sights = await sandbox.before_tests(time.monotonic() - began, self._agent_user())
        except HarborBackendError as exc:  # the tests say it better, or can do without
            sights = Sights(None, None, f"the sandbox could not be looked into: {exc}")
        found = integrity(sights, self.task.config.environment.workdir or "/app")
        earlier = trial.results.integrity
        trial.results.integrity = found if earlier is None else worse(earlier, found)

    def _agent_user(self) -> str | int | None:
        steps = self.task.config.steps or []
        step = next((step for step in steps if step.name == self.step_name), None)
        own = None if step is None else step.agent.user
        return self.task.config.agent.user if own is None else own

    async def _verified(self) -> VerifierResult:
        if self._trial is not None:
            await self._look(self._trial)
        try:
            return await super().verify()
        except asyncio.CancelledError:  # also of a time-out, which Harbor makes of it
            await self._keep_output()
            raise
        except DownloadVerifierDirError as exc:
            if not isinstance(exc.__cause__, ValueError):  # of an environment of ours: the budget
                raise
            self._note(
                f"Of {self._inside.verifier_dir} the reward alone was read: let tests/test.sh "
                "leave less there"
            )
            return VerifierResult(rewards=await self._rewards_alone())
        except RewardFileNotFoundError:
            raise RewardFileNotFoundError(NO_REWARD_FILE) from None

    async def _remove_reward_files(self) -> None:
        """Begin without a reward; what an agent put there in place of a file goes, too."""
        try:
            await super()._remove_reward_files()
        except RuntimeError:
            names = (self._inside.reward_text_path, self._inside.reward_json_path)
            await self.environment.exec(f"rm -rf -- {names[0]} {names[1]}", user="root")
            await super()._remove_reward_files()

    def _parse_reward_text(self) -> Rewards:
        return read_reward_text(self.trial_paths.reward_text_path)

    def _parse_reward_json(self) -> Rewards:
        return read_reward_json(self.trial_paths.reward_json_path)

    async def _rewards_alone(self) -> Rewards:
        """Fetch the reward files, and nothing else."""
        for inside, here, parse in (
            (self._inside.reward_json_path, self.trial_paths.reward_json_path, read_reward_json),
            (self._inside.reward_text_path, self.trial_paths.reward_text_path, read_reward_text),
        ):
            try:
                await self.environment.download_file(str(inside), here)
            except FileNotFoundError:
                continue
            return parse(here)
        raise RewardFileNotFoundError(NO_REWARD_FILE)

    async def _keep_output(self) -> None:
        """Fetch what the tests left, and note the end of what they printed. Raises nothing."""
        here = self.trial_paths.verifier_dir
        try:
            if not self.environment.is_path_mounted(self._inside.verifier_dir, here):
                async with asyncio.timeout(_KEEP_SEC):
                    await self.environment.download_dir(
                        source_dir=str(self._inside.verifier_dir), target_dir=here
                    )
            end = await asyncio.to_thread(read_end, self.trial_paths.test_stdout_path, _SHOWN_BYTES)
            shown = end.decode(errors="replace").strip() or "nothing"
        except FileNotFoundError:
            shown = "nothing"
        except Exception as exc:  # every environment has its own
            shown = f"not to be had ({type(exc).__name__}: {exc})"
        self._note(f"The tests were ended before they finished. The end of their output: {shown}")

    def _note(self, text: str) -> None:
        self.logger.warning(text)
        if self._trial is not None:
            self._trial.results.note(text)


def _trial(key: str) -> Trial | None:
    """The living trial; ``None`` where Harbor grades one again that ended."""
    try:
        return find_trial(key)
    except RuntimeError:
        return None


def _image_has_tests(task: Task, step_name: str | None) -> bool:
    """Whether the tests run in a separate image that was built with them."""
    steps = task.config.steps or []
    step = next((step for step in steps if step.name == step_name), None)
    definition = resolve_verifier_environment_definition(task.config, task.paths, step)
    return definition is not None and definition.bundled_tests
