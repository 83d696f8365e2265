"""Harbor's own agents on the rollout's model."""
