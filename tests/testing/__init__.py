"""Tests of the API server for tests."""
