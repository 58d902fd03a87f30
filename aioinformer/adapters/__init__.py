"""Adapters between aioinformer and other libraries. Each needs its library, and nothing else
imports it.

    from aioinformer.adapters.kubernetes_asyncio import client_of

    async with client_of(api) as client, SharedInformerFactory(client) as informers: ...

The ``ApiClient`` stays the program's: it is neither used for requests nor closed. aioinformer opens
its own connections, separate ones for watches, and reads certificate files again when they change.
"""
