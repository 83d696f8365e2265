"""Documented import path of ``AgentWorkflow``."""

from osmosis_ai.rollout.workflow import AgentWorkflow

__all__ = ["AgentWorkflow"]
