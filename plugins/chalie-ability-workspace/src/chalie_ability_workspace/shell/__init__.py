"""What a shell command would do, judged before it runs, and how it is run."""
