"""Harbor environments of our own, and the choice between them and Harbor's."""
