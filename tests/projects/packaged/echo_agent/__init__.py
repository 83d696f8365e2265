"""One package with its own build system."""
