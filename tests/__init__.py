"""The tests of aioinformer: one folder for each part, and the promises across them."""
