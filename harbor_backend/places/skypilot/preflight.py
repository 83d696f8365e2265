"""Whether trials can run on SkyPilot from here, in the order in which one thing needs the other."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harbor_backend.places.skypilot.errors import SkypilotUnavailableError
from harbor_backend.places.skypilot.sdk import installed_version, load_sdk

_ENDPOINT_ENV = "SKYPILOT_API_SERVER_ENDPOINT"
_LOGIN = "sky api login -e <endpoint>"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; ``remedy`` is set where it failed."""

    name: str
    detail: str
    remedy: str | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing has to be done."""
        return self.remedy is None


def check_skypilot() -> Iterator[Check]:
    """Yield checks up to the first that fails: package, SDK, endpoint, and whether it answers."""
    try:
        sdk = load_sdk()
    except SkypilotUnavailableError as exc:
        problem, _, remedy = str(exc).rpartition(": ")
        yield Check("skypilot", problem, remedy)
        return
    yield Check("skypilot", f"SkyPilot {installed_version()}, sandbox SDK {sdk.__name__}")
    endpoint = _endpoint()
    yield endpoint
    if endpoint.passed:
        yield _health()


def require_skypilot() -> None:
    """Pass when all checks do.

    Raises:
        SkypilotUnavailableError: one failed; never ``SystemExit``, which is what
            Harbor's own check raises.
    """
    for check in check_skypilot():
        if not check.passed:
            raise SkypilotUnavailableError(f"{check.detail}: {check.remedy}")


def _endpoint() -> Check:
    try:
        from sky import skypilot_config
        from sky.server import common

        configured = skypilot_config.get_nested(("api_server", "endpoint"), None)
        url = common.redact_url_password(common.get_server_url())
    except Exception as exc:  # configuration of any shape is read by it
        return Check(
            "skypilot api",
            f"SkyPilot's configuration cannot be read: {exc}",
            f"fix it, or {_LOGIN}",
        )
    if os.environ.get(_ENDPOINT_ENV):
        return Check("skypilot api", f"{url} (from {_ENDPOINT_ENV})")
    if configured:
        return Check("skypilot api", f"{url} (from SkyPilot's configuration)")
    return Check(
        "skypilot api",
        f"No API server was chosen; SkyPilot would take {url}, a server on this machine",
        f"{_LOGIN}, or set {_ENDPOINT_ENV} if that server is meant",
    )


def _health() -> Check:
    from sky.server import common

    url = common.redact_url_password(common.get_server_url())
    try:
        found: Any = common.get_api_server_status(common.get_server_url())
    except Exception as exc:
        return Check("skypilot health", f"{url}/api/health failed: {exc}", "check the address")
    status = found.status.value
    if status == "healthy":
        return Check("skypilot health", f"{url}/api/health answers (version {found.version})")
    remedies = {
        "needs_auth": _LOGIN,
        "version_mismatch": str(found.error or "install the server's version of SkyPilot"),
    }
    remedy = remedies.get(status, "check the address and the network, or start the server")
    return Check("skypilot health", f"{url}/api/health says {status}", remedy)
