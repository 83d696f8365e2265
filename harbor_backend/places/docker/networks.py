"""The network of sandboxes that may reach the internet, and not one another.

One bridge serves all of an engine's: it passes nothing between its containers, and who has
neither ``NET_RAW`` nor packet sockets cannot speak in a neighbour's name. A bridge for each would
cost an engine a tenth of a second and one of the few dozen networks that it has by default.
"""

from typing import Any

from harbor_backend.errors import SandboxStartError
from harbor_backend.places import labels
from harbor_backend.places.docker.engine import Engine, EngineError

PUBLIC_NETWORK = f"{labels.PREFIX}-public"
_APART = "com.docker.network.bridge.enable_icc"
_MTU = "com.docker.network.driver.mtu"
_MISSING, _TAKEN = 404, 409


async def ensure_public_network(engine: Engine) -> str:
    """Have the network there, as it is to be; returns its name.

    Raises:
        EngineError: the engine does not answer, or has no room for a network.
        SandboxStartError: there is one of this name that keeps nobody apart.
    """
    network = await _found(engine)
    if network is None:
        await _make(engine)
        network = await _found(engine)
    options = (network or {}).get("Options") or {}
    if options.get(_APART) != "false":
        raise SandboxStartError(
            f"The engine's network {PUBLIC_NETWORK} does not keep its containers apart "
            f"({_APART} is not 'false'): remove it with `docker network rm {PUBLIC_NETWORK}`, and "
            "it is made anew"
        )
    return PUBLIC_NETWORK


async def _found(engine: Engine) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = await engine.call("GET", f"/networks/{PUBLIC_NETWORK}")
    except EngineError as exc:
        if exc.status != _MISSING:
            raise
        return None
    return found


async def _make(engine: Engine) -> None:
    default = await engine.call("GET", "/networks/bridge")
    mtu = (default.get("Options") or {}).get(_MTU)  # networks of its own do not take it over
    options = {_APART: "false"} | ({_MTU: mtu} if mtu else {})
    body = {"Name": PUBLIC_NETWORK, "Driver": "bridge", "Options": options}
    try:
        await engine.call("POST", "/networks/create", json=body)
    except EngineError as exc:
        if exc.status != _TAKEN:
            raise
