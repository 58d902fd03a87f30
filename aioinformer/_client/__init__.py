"""The network: how the API server is found, asked and understood.

The only package of the library that knows HTTP (aiohttp) and kubeconfig files
(kubernetes_asyncio, imported when a configuration is loaded and not before). It implements what
``_runtime`` declares, by structure, and imports nothing of it.

    client       Client: what a program opens, and closes
    discovery    asks the server what it serves      catalogue    understands the answer
    transport    sessions, requests, open answers    statuses     failures -> our errors
    kubeconfig   finds credentials as kubectl does   kubeconfig_files   reads the files
    calls        one request                         sending      a write goes out once
    own_headers  what a program adds to them
    writer       writes single objects               write_advice what to do about a refused one
    server_warnings  what a server says beside an answer
    refusals     reads an answer other than 200      masking      hides what was sent from it
    traffic      who of one client's informers asks when
    credentials  where the server is, and how to be known there
    access       with what a request goes out        sessions     connections of one TLS context
    renewals     headers renewed in time             certificates TLS contexts that rotate
    token_files  tokens that others rewrite          plugins      programs that yield credentials
    pod          what a pod finds mounted            kubeconfig_context  one context of the files
    plugin_runs  runs a program off the loop         flights      one run at a time, shared
    loader_settings  what kubernetes_asyncio's loaders fill in
"""
