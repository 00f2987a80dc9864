"""The host's own abilities: find_tools, find_skills and read_result."""
