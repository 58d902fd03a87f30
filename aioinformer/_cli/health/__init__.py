"""``aioinformer health``: checks of a cluster for use with informers."""
