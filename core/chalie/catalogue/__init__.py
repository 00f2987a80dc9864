"""What is installed: read without importing it, kept in generations."""
