"""Delivery of events from the pump to handlers and event streams.

pump ──▶ listener ──▶ runner ──▶ call ──▶ async handler
           │             └── inline_dispatch ──▶ plain function
           └──▶ streams ──▶ async for
"""
