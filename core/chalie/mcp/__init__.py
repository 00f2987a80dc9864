"""MCP both ways: tools of other servers join the catalogue, and this host is served to other agents."""
