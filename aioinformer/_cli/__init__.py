"""The command line: ``aioinformer`` with a command.

arguments ──▶ demo | serve | watch | wait | health | shards ──▶ terminal
"""
