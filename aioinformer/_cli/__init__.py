"""The command line: ``aioinformer watch``, ``demo`` and ``health``.

arguments ──▶ watch | demo | health ──▶ terminal

arguments         the parser, and the option groups of all commands
completion        completion of names from the cluster
cluster_options   kubeconfig, context and namespace options
terminal          output, styles, signals
watch             ``aioinformer watch``: kubectl get --watch, from a cache
demo              ``aioinformer demo``: an informer under load and faults
health            ``aioinformer health``: checks of a cluster
"""
