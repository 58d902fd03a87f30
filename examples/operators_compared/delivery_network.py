"""A content delivery network that keeps copies of pages, for programs without asyncio."""

__all__ = ["purge"]


def purge(site: str) -> None:
    """Delete the copies of a Site's page. Stands in for a request over HTTP."""
    print("purged", site, flush=True)
