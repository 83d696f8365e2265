"""Harbor's own environments, as they are."""
