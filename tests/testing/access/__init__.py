"""Tests of the users of a server and their rights."""
