"""A FastAPI service with informers, and a page that shows a cluster live.

    python -m examples.fastapi_app

README.md beside this file describes the routes and the ways to choose a cluster. Start to read at
``app``. Most services copy ``dependencies`` and ``reads`` first.

    settings       the cluster and the resources to show
    app            the application: lifespan, routes, errors
    dependencies   dependencies of endpoints: listers
    reads          REST endpoints that read the cache, async or in threads
    live           the parts that run as long as the application
    rows           the row of an object on the page
    status         the status of the informers, for the page
    history        the numbers of the last minute
    embedded       an embedded cluster with changing pods
    static         the page: no build step, nothing from another host
"""
