"""Checks that hold a recorded history to what the library promises."""
