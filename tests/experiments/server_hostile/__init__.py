"""Hostile callers of a rollout server, and what honest ones notice of them."""
