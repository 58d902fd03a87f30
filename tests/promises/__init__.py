"""The promises of the library, a test of that name each, on a server over HTTP."""
