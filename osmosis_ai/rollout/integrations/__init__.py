"""Agent frameworks that call the policy of the active rollout."""
