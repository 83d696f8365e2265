"""Measurements of trials on SkyPilot's sandbox SDK, on the double that the tests use."""
