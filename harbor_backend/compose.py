"""What a compose trial of Harbor's gets on top: labels, and no wait at its end."""

import json
from pathlib import Path

import yaml

from harbor_backend import labels
from harbor_backend.instance import instance_id

_MAIN = "main"


def write_overlay(environment_dir: Path, target: Path, rollout_id: str) -> Path:
    """Write a compose file to be layered over a task's own.

    Every service gets our labels, so that the reaper knows it, and a stop grace
    period of zero: nothing in a sandbox is worth ten seconds of waiting.

    Raises:
        ValueError: the task's compose file is not a mapping of services.
    """
    owner = {
        labels.SANDBOX: "compose",
        labels.INSTANCE: instance_id(),
        labels.ROLLOUT: rollout_id.replace("$", "$$"),
    }
    service = {"stop_grace_period": "0s", "labels": owner}
    overlay = {"services": dict.fromkeys(_services(environment_dir), service)}
    target.write_text(json.dumps(overlay))  # JSON is YAML
    return target


def _services(environment_dir: Path) -> list[str]:
    path = environment_dir / "docker-compose.yaml"
    if not path.exists():
        return [_MAIN]
    try:
        document = yaml.safe_load(path.read_text())
        services = document["services"]
    except (yaml.YAMLError, KeyError, TypeError) as exc:
        raise ValueError(f"{path} is not a compose file with services: {exc}") from exc
    return list(dict.fromkeys([_MAIN, *map(str, services)]))
