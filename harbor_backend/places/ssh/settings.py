"""Which hosts there are, from the arguments of an ``EnvironmentConfig``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

_GENERATED = "~/.sky/generated/ssh"


class HostSettings(BaseModel):
    """One host: what ``ssh`` is told to connect to, and how many trials it runs at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    destination: str
    slots: int = Field(ge=1)

    @field_validator("destination")
    @classmethod
    def _one_word(cls, value: str) -> str:
        if not value or value.startswith("-") or any(c.isspace() or c == "\0" for c in value):
            raise ValueError(f"{value!r} is no ssh destination: give an alias, or user@host")
        return value


class FleetSettings(BaseModel):
    """Hosts, and how they are reached. Equal settings share one fleet in a process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: tuple[HostSettings, ...] = Field(min_length=1)
    ssh_config: str | None = None
    docker_socket: str = "/var/run/docker.sock"
    directory: str = ".osmosis"

    @field_validator("docker_socket")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not value.startswith("/") or ":" in value:
            raise ValueError(f"docker_socket={value!r} must be an absolute path without a colon")
        return value

    @property
    def slots(self) -> int:
        """How many trials all hosts run together."""
        return sum(host.slots for host in self.hosts)


def split_arguments(
    kwargs: Mapping[str, Any], others: frozenset[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """An environment's arguments that are about hosts, and the ``others``, which it takes itself.

    What is neither is left among the former, where it is refused by name.
    """
    own = {name: value for name, value in kwargs.items() if name in others}
    return {name: value for name, value in kwargs.items() if name not in own}, own


def fleet_settings(kwargs: Mapping[str, Any]) -> FleetSettings:
    """Read ``cluster`` or ``hosts`` from the arguments that are about hosts.

    - ``cluster``: a cluster of ``sky launch``; its nodes are the hosts.
    - ``hosts``: a list of ssh destinations, or of ``{destination, slots}``.
    - ``slots`` (4): trials at a time on each host that names no number itself.
    - ``ssh_config``: the file that ssh reads; a cluster's own by default.
    - ``docker_socket``, ``directory``: on the hosts; the latter is below the home
      directory unless it is absolute, and holds the runtimes.

    Raises:
        ValueError: an argument is unknown, missing or wrong; the text names it.
    """
    given = dict(kwargs)
    cluster, hosts = given.pop("cluster", None), given.pop("hosts", None)
    slots = given.pop("slots", 4)
    if (cluster is None) == (hosts is None):
        raise ValueError(
            "sky-docker needs either cluster=, the name of a cluster of `sky launch`, or hosts=, "
            "a list of ssh destinations"
        )
    if cluster is not None:
        path, hosts = cluster_hosts(str(cluster))
        given.setdefault("ssh_config", str(path))
    elif isinstance(hosts, str):
        raise ValueError(f"hosts={hosts!r} must be a list of ssh destinations")
    named = [
        {"slots": slots, **(host if isinstance(host, Mapping) else {"destination": host})}
        for host in hosts
    ]
    try:
        settings = FleetSettings.model_validate({**given, "hosts": named})
    except ValidationError as exc:
        raise ValueError(f"sky-docker: {_reasons(exc)}") from exc
    names = [host.destination for host in settings.hosts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"sky-docker: hosts names {', '.join(twice)} twice")
    return settings


def cluster_hosts(cluster: str) -> tuple[Path, list[str]]:
    """The ssh configuration that SkyPilot wrote for a cluster, and its nodes in order.

    Raises:
        ValueError: there is none: the cluster is down, or has another name.
    """
    if not cluster or "/" in cluster or cluster.startswith("."):
        raise ValueError(f"cluster={cluster!r} is no name of a SkyPilot cluster")
    path = Path(_GENERATED, cluster).expanduser()
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise ValueError(
            f"cluster={cluster!r}: SkyPilot wrote no {path}. Launch it with `sky launch -c "
            f"{cluster} skypilot.hosts.yaml`, or refresh the file with `sky status {cluster}`"
        ) from None
    words = [line.split() for line in lines]
    nodes = [host for word in words if word and word[0].lower() == "host" for host in word[1:]]
    if not nodes:
        raise ValueError(f"cluster={cluster!r}: {path} names no host; run `sky status {cluster}`")
    return path, nodes


def _reasons(exc: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, error['loc']))}: {error['msg'].removeprefix('Value error, ')}"
        for error in exc.errors()
    )
