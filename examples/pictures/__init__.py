"""The pictures of the README, and the programs that draw them."""
