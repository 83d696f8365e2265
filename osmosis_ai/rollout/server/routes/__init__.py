"""The HTTP routes of a rollout server."""
