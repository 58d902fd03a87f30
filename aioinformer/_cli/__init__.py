"""The command line's parts. ``__main__`` puts them together; nothing else imports them."""
