"""The network: how the API server is found, asked and understood.

The only package of the library that knows HTTP (aiohttp) and kubeconfig files
(kubernetes_asyncio, imported when a configuration is loaded and not before). It implements what
``_runtime`` declares, by structure, and imports nothing of it.

    client       Client: what a program opens, and closes
    discovery    asks the server what it serves      catalogue    understands the answer
    transport    sessions, requests, open answers    statuses     failures -> our errors
    kubeconfig   finds credentials as kubectl does   kubeconfig_files   reads the files
    refusals     reads an answer other than 200      masking      hides what was sent from it
    credentials  where the server is, and how to be known there
"""
