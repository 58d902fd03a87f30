"""Rules of several namespaces: their selectors, and a cache with a part for each."""
