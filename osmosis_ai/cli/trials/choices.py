"""What a person chooses between on the command line of ``osmosis trials``."""

from enum import StrEnum


class Keep(StrEnum):
    """Whose sandboxes stay after their trial."""

    NONE = "none"
    FAILED = "failed"
    ALL = "all"


class EnvironmentName(StrEnum):
    """What runs a task's containers.

    ``docker`` chooses per task: our own environment where one container is
    enough, Harbor's (Compose) otherwise; the next two force one of them.
    ``skypilot`` is SkyPilot's sandboxes, ``sky-docker`` Docker on hosts over SSH.
    """

    DOCKER = "docker"
    OSMOSIS_DOCKER = "osmosis-docker"
    HARBOR_DOCKER = "harbor-docker"
    SKYPILOT = "skypilot"
    SKY_DOCKER = "sky-docker"
