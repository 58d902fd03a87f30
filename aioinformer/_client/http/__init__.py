"""Requests over HTTP, and HTTP's errors as errors of this library.

request ──▶ transport ──▶ sessions ──▶ aiohttp
               └── error_mapping ──▶ error_responses, hints ──▶ errors

request           one request as a value, and the timeouts of all
transport         sends requests; streams responses
sessions          one connection pool per TLS configuration
headers           the User-Agent header, and the server's Warning headers
error_mapping     foreign exceptions and HTTP statuses to errors of this library
error_responses   the text of an error response, without secrets
hints             advice for the errors that beginners meet
"""
