"""What importing and binding the integrations loads, and whom they talk to, in fresh processes."""

import os
import subprocess
import sys
import textwrap

import pytest

BASE = "osmosis_ai.rollout.integrations.agents"


def run_python(code: str, **env: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_neither_import_nor_binding_loads_litellm() -> None:
    loaded = run_python(
        f"""
        import asyncio, sys
        from osmosis_ai.rollout import RolloutContext
        from {BASE}.openai_agents import *

        async def bind():
            with RolloutContext(chat_completions_url="http://127.0.0.1:9/v1"):
                OsmosisAgent(name="a", model=OsmosisRolloutModel())

        asyncio.run(bind())
        print(*(name in sys.modules for name in ("agents", "litellm", "harbor", "strands")))
        print(OsmosisLitellmModel is BoundRolloutModel)
        """
    )
    assert loaded.split() == ["True", "False", "False", "False", "True"]


@pytest.mark.parametrize("missing", ["agents", "openai"])
def test_a_missing_package_names_the_extra(missing: str) -> None:
    told = run_python(
        f"""
        import sys
        sys.modules[{missing!r}] = None
        try:
            from {BASE}.openai_agents import *
        except ModuleNotFoundError as exc:
            print(exc)
        """
    )
    assert 'pip install "osmosis-ai[openai-agents]"' in told


TRACED = f"""
import asyncio, sys

looked_up = set()
sys.addaudithook(
    lambda event, args: looked_up.add(args[0]) if event == "socket.getaddrinfo" else None
)
from agents import Runner, add_trace_processor, flush_traces
from agents.tracing import TracingProcessor
from {BASE}.openai_agents import *
from osmosis_ai.rollout import RolloutContext
from tests.rollout.integrations.scripted import says, serve_script

names = []

class Local(TracingProcessor):
    def on_trace_start(self, trace): names.append(trace.name)
    def on_trace_end(self, trace): pass
    def on_span_start(self, span): pass
    def on_span_end(self, span): pass
    def shutdown(self): pass
    def force_flush(self): pass

async def main():
    add_trace_processor(Local())
    async with serve_script(says("hi")) as script:
        with RolloutContext(chat_completions_url=script.url):
            agent = OsmosisAgent(name="a", model=OsmosisRolloutModel())
            await Runner.run(agent, "hello", session=OsmosisMemorySession())

asyncio.run(main())
flush_traces()
print(sorted(str(host) for host in looked_up if not str(host).startswith("127.")), names)
"""


def test_traces_stay_in_the_process_even_with_a_key_in_the_environment() -> None:
    told = run_python(TRACED, OPENAI_API_KEY="sk-not-a-key", OPENAI_AGENTS_DISABLE_TRACING="0")
    assert told.strip() == "[] ['Agent workflow']"


def test_tracing_that_was_set_up_before_stays() -> None:
    told = run_python(
        f"""
        from agents.tracing import get_trace_provider
        before = get_trace_provider()
        import {BASE}.openai_agents
        print(get_trace_provider() is before)
        """
    )
    assert told.strip() == "True"
