"""A rollout server killed over and over under load, and the proof that nothing is lost."""
