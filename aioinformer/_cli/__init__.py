"""The command line: ``aioinformer`` with a command.

command_line ──▶ demo | serve | watch | wait | health | shards ──▶ terminal
"""
