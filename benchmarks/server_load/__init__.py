"""Thousands of rollouts in flight on one server, each polled, ours against the vendor's."""
