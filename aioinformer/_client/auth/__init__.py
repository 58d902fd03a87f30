"""Credentials: obtain, refresh, and keep secret.

credentials     the kinds of credentials, as values
authenticator   the credentials of a request, and their refresh after a 401
token_refresh   credentials that expire: one refresh for all waiting requests
token_file      a token in a file that is replaced from time to time
exec_plugin     credential plugins (client.authentication.k8s.io)
tls             client certificates and trusted CAs, read again when their files change
proxies         the proxy in front of a server, also from the environment
impersonation   the Impersonate headers
redaction       removal of secrets from texts and exceptions
off_loop        file access in a thread
"""
