"""The job and the command that runs it."""
