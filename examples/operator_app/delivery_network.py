"""A content delivery network that keeps copies of pages; here it only logs."""

import asyncio
import logging

__all__ = ["purge"]


async def purge(site: str) -> None:
    """Delete the copies of a Site's page. Stands in for a request over HTTP."""
    await asyncio.sleep(0)
    logging.getLogger(__name__).info("purged the page of %s", site)
