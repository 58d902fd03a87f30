"""Credentials: obtain, refresh, and keep secret."""
