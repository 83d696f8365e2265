"""Importing the gateway costs nearly nothing."""

import subprocess
import sys


def test_importing_loads_no_server_client_or_sdk() -> None:
    code = (
        "import sys, osmosis_ai.gateway as g; "
        "assert g.GatewayLimits() and g.Capture(); "
        "heavy = {'litellm', 'openai', 'aiohttp', 'httpx'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "g.Gateway; "
        "heavy = {'litellm', 'openai'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
