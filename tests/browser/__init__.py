"""The live page of the FastAPI example, in a real browser."""
