"""The command line: one file per command, every one of them through `Host`."""
