"""The simulation: its loop, its plans, its checker, and the histories that judge the library."""
