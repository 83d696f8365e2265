"""Which images a Dockerfile starts from, read from its text."""

import pytest

from harbor_backend.places.docker.bases import base_images


@pytest.mark.parametrize(
    ("dockerfile", "found"),
    [
        pytest.param("FROM a\n", ["a"], id="one"),
        pytest.param("from  a:1 \n", ["a:1"], id="any case"),
        pytest.param("FROM --platform=$BUILDPLATFORM r.io/x/a@sha256:0f AS b\n",
                     ["r.io/x/a@sha256:0f"], id="flags and digest"),
        pytest.param("FROM b AS build\nFROM a\nCOPY --from=build /x /x\nCOPY --from=0 /x /x\n",
                     ["a", "b"], id="stages are no images"),
        pytest.param("FROM a AS One\nFROM one\n", ["a"], id="a stage upon a stage"),
        pytest.param("FROM a\nCOPY --from=tools:2 /x /x\n", ["a", "tools:2"], id="copied from"),
        pytest.param("FROM a\nRUN --mount=type=bind,from=m,target=/m \\\n"
                     "    --mount=type=cache,target=/c true\n", ["a", "m"], id="mounted"),
        pytest.param("FROM scratch\n", [], id="scratch"),
        pytest.param("FROM \\\n  a\n", ["a"], id="on the next line"),
        pytest.param('ARG BASE=a TAG="1"\nFROM ${BASE}:$TAG\n', ["a:1"], id="arguments"),
        pytest.param("ARG R=r.io\nARG BASE=${R}/a\nFROM $BASE\n", ["r.io/a"], id="of arguments"),
        pytest.param("FROM ${NONE:-a}\n", ["a"], id="default"),
        pytest.param("ARG DEV=1\nFROM a${DEV:+-dev}\n", ["a-dev"], id="alternative"),
        pytest.param("FROM a\nARG BASE=b\nFROM $BASE\n", ["a"], id="an argument of a stage"),
        pytest.param("# FROM comment\nFROM a\n", ["a"], id="a comment"),
        pytest.param("ARG ONLY\nFROM $ONLY\n", [], id="what only the builder knows"),
        pytest.param("", [], id="empty"),
        pytest.param("FROM a?b=c\n", [], id="no reference"),
    ],
)  # fmt: skip
def test_base_images(dockerfile: str, found: list[str]) -> None:
    assert base_images(dockerfile) == found
