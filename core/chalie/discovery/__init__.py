"""Finding abilities and playbooks by name or by meaning, offline."""
