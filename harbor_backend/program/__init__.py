"""What runs in sandboxes: agents, graders, and the runtime that holds them."""
