"""The processes that the gateway's benchmark runs: model, gateway, peer and callers."""
