"""Lists, watches and writes of one resource over HTTP.

reflector ──▶ client_lister_watcher ──▶ request_scheduler ──▶ http
program ──▶ resource_api ─────────────────────────────────────▶ http
"""
