"""The terminal: output, styles, the screen, and the process.

process    signals, exit codes, and errors as one line
output     lines to a pipe or terminal that may close
messages   log records as messages to the user
style      colours and widths
screen     a region of the terminal that is redrawn
"""
