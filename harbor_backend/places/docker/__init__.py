"""Containers of a Docker engine, one for each sandbox."""
