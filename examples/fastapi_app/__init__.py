"""A FastAPI service that lives with informers, and a page that shows a cluster as it changes.

    python -m examples.fastapi_app

See README.md beside this file for what it serves and how to point it at a cluster. Start to read
at ``app``; what one would copy first is ``dependencies`` and ``reads``.

    settings       what it shows, of which cluster
    app            the application: lifespan, routes, errors
    dependencies   what endpoints ask for: listers
    reads          REST: from the cache, async or in threads
    live           what runs as long as the application does
    rows           what the page shows of an object
    news           what the page is told of the informers themselves
    history        the last minute in numbers
    embedded       a cluster of its own, that never rests
    serving        the server, which lets clients of event streams go
    static         the page: no build step, no other host
"""
