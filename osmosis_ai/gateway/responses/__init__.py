"""The Responses API for agents that use it, over upstreams that serve it or do not."""
