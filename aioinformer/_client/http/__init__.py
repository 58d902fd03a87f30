"""HTTP requests, and their failures as errors of this library.

request ──▶ transport ──▶ sessions ──▶ aiohttp
               ├── error_mapping ─────┐
               └── error_responses ───┴──▶ hints
                     └── secret_errors
"""
