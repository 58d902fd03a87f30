"""Work on caches in calm moments."""
