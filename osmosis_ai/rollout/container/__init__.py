"""What runs inside a sandbox: the runner, the supervisor and the model relay.

Nothing here imports Harbor, a backend or a server.
"""
