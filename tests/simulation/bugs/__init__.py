"""Planted bugs, by the part of the library that they are in: the checks find each of them."""
