"""A real API server for custom resources, and the tests that run against it."""
