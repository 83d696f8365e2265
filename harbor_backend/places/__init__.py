"""Where sandboxes live."""
