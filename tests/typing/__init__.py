"""Programs that are type-checked, and run nowhere: what a checker must know of the public API."""
