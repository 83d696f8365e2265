"""Job directories: results in Harbor's own layout and models, for Harbor's own tools."""
