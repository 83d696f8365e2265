"""The ground floor: small things that several packages share. It imports nothing else of ours."""
