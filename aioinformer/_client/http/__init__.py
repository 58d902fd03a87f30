"""HTTP requests, and their failures as errors of this library.

request ──▶ transport ──▶ sessions ──▶ aiohttp
               ├── error_mapping ─────┐
               └── error_responses ───┴──▶ hints
                     └── secret_errors

request           one request as a value, and the timeouts of all
transport         sends requests; streams responses
sessions          one connection pool per TLS configuration
resolver          the addresses of the server's name, in the order in which they are tried
headers           the headers of the program, and the Warning headers of the server
user_agent        the names under which a server records the program
error_mapping     exceptions of aiohttp, ssl and the system to errors of this library
error_responses   error responses to errors of this library, without secrets
secret_errors     errors and warnings about Secrets, without the contents of Secrets
hints             the half sentence of an error text that says what to try
"""
