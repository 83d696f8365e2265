"""The LiteLLM proxy in an environment of its own, in front of the benchmark's model."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

KEY = "sk-benchmark"
_START_SEC = 120


@dataclass(frozen=True)
class Proxy:
    """A running proxy."""

    url: str
    version: str
    pid: int


def environment(directory: Path) -> Path:
    """Make a venv with ``litellm[proxy]`` unless it is there; return its directory."""
    if not (directory / "bin" / "litellm").exists():
        uv = shutil.which("uv")
        if uv is None:
            raise SystemExit("the comparison with LiteLLM needs uv; or pass --no-litellm")
        subprocess.run(
            [uv, "venv", "-q", "--clear", "--python", sys.executable, str(directory)], check=True
        )
        python = str(directory / "bin" / "python")
        subprocess.run([uv, "pip", "install", "-q", "-p", python, "litellm[proxy]"], check=True)
    return directory


@asynccontextmanager
async def proxy(directory: Path, upstream: str, models: Sequence[str]) -> AsyncIterator[Proxy]:
    """Run the proxy on loopback until the block ends."""
    with tempfile.TemporaryDirectory(prefix="litellm-bench") as scratch:
        config = Path(scratch) / "config.yaml"
        config.write_text(json.dumps(_config(upstream, models)))
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            str(directory / "bin" / "litellm"),
            "--config", str(config), "--host", "127.0.0.1", "--port", str(port),
            cwd=scratch,
            env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR",
                              "LITELLM_MASTER_KEY": KEY, "NO_PROXY": "127.0.0.1"},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            await _until_ready(process, url)
            yield Proxy(f"{url}/v1", _version(directory), process.pid)
        finally:
            if process.returncode is None:
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 15)
            except TimeoutError:
                process.kill()
                await process.wait()


def _config(upstream: str, models: Sequence[str]) -> dict[str, object]:
    # YAML takes JSON. Retries and logging are off: only forwarding is compared.
    return {
        "model_list": [
            {
                "model_name": model,
                "litellm_params": {
                    "model": f"openai/{model}",
                    "api_base": upstream,
                    "api_key": "none",
                },
            }
            for model in models
        ],
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": KEY},
    }


async def _until_ready(process: asyncio.subprocess.Process, url: str) -> None:
    async with asyncio.timeout(_START_SEC), httpx.AsyncClient(trust_env=False) as client:
        while True:
            if process.returncode is not None:
                raise RuntimeError(f"the LiteLLM proxy ended with {process.returncode}")
            try:
                if (await client.get(f"{url}/health/liveliness")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.5)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _version(directory: Path) -> str:
    code = "from importlib.metadata import version; print(version('litellm'))"
    python = str(directory / "bin" / "python")
    return subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
