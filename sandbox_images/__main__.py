"""`python -m sandbox_images`: get, build or look at the base image.

Exit codes: 0 done; 1 it cannot be done, with the reason on stderr; 3 (`fetch` and `status`)
the image is not there.
"""

import argparse
import sys

import docker
import docker.errors

from sandbox_images.base import (
    BASE_IMAGE,
    base_image_status,
    ensure_base_image,
    fetch_base_image,
)
from sandbox_images.errors import BaseImageError

_NOT_THERE = 3


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sandbox_images", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="have the base image, building it if need be")
    build.add_argument("--force", action="store_true", help="build it even if it is there")
    build.add_argument("--no-registry", action="store_true", help="do not ask a registry for it")
    commands.add_parser("fetch", help="have it from the engine or a registry, never build")
    commands.add_parser("status", help="say what the engine has")
    options = parser.parse_args(arguments)
    try:
        client = docker.from_env()
        if options.command == "build":
            ensure_base_image(client, force=options.force, registry=not options.no_registry)
        elif options.command == "fetch":
            return 0 if fetch_base_image(client) else _NOT_THERE
        else:
            status = base_image_status(client)
            print(f"{BASE_IMAGE}: {status.state} {status.image_id} {status.megabytes} MB")
            return _NOT_THERE if status.state == "missing" else 0
    except BaseImageError as error:
        print(error, file=sys.stderr)
        return 1
    except docker.errors.DockerException as error:
        print(f"the Docker engine does not answer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
