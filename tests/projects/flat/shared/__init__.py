"""A package beside the modules."""
