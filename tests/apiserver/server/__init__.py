"""The real API server: its sources in Go, its build and process, a second client, and a proxy."""
