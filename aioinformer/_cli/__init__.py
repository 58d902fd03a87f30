"""The command line: ``aioinformer`` with a command.

arguments ──▶ demo | serve | watch | wait | health | shards ──▶ terminal

arguments         the parser
argument_types    the values of arguments
help_texts        the texts of ``--help``
options           the options of each command
completion        completion of names from the cluster
cluster_options   the client, and the kubeconfig, context and namespace options
outages           lines about requests that fail for a while
terminal          output, styles, signals
watch             ``aioinformer watch``: kubectl get --watch, from a cache
wait              ``aioinformer wait``: until one object has reached a state
demo              ``aioinformer demo``: an informer under load and faults
serve             ``aioinformer serve``: an API server to try programs on
health            ``aioinformer health``: checks of a cluster
shards            ``aioinformer shards``: the members of a shard group, and their shards
"""
