"""Attacks on every wall of the project, and what holds each."""
