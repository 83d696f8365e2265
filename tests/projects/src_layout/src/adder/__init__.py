"""A package under src/, without a build system."""
