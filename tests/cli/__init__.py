"""The command line: what it draws as text, and what it does as a process."""
