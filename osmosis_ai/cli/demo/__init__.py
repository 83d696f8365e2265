"""The demo: the same prompts on two backends, and a dataset of Harbor tasks."""

from osmosis_ai.cli.demo.run import run_demo

__all__ = ["run_demo"]
