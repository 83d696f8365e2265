"""A double of SkyPilot's sandbox SDK, for tests: each sandbox is a local Docker container.

What it proves: that callers keep to the documented surface (names, arguments,
caps, the exclusion of pool and image) and survive the faults it injects. What
it does not prove: anything about the real platform's times, errors, listing or
limits that are not documented.
"""
