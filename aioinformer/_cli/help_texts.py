"""The texts of ``--help``, in lines of at most eighty columns."""

from __future__ import annotations

HELP_EPILOG = """\
start with:
  aioinformer demo            needs no cluster
  aioinformer serve           runs an API server for your own programs to try
  aioinformer health          checks what you can list and watch in a cluster
  aioinformer watch pods -A   shows the pods of a cluster as they change

exit codes:
  0             done; health: every check has passed
  1             the server could not be reached; demo: the cache differs from
                the server; health: a check has failed; wait: not within the
                timeout, or the Job has failed
  2             wrong arguments, cluster, selector or resource; serve: the port
                is taken, or a manifest can't be created
  130, 143      interrupted (SIGINT), terminated (SIGTERM)
  141           the reader of the output has closed the pipe
"""

DEMO_HELP = "show an informer at work against an API server in this process; needs no cluster"
SERVE_HELP = "run an API server on a loopback port, with pods that change; needs no cluster"
WATCH_HELP = "print the objects of a resource in a cluster, then each change"
WAIT_HELP = "wait until an object is rolled out, ready, created, deleted or complete"
HEALTH_HELP = "check a cluster: credentials, latency, and the resources to list and watch"
SHARDS_HELP = "print the members of a shard group, and the shards on which each works"
COMPLETION_HELP = "print the code with which a shell completes the arguments of this command"

SERVE_EXAMPLES = """\
examples:
  aioinformer serve
  aioinformer serve --port 0 --objects 5000 --rate 200
  aioinformer serve --load manifests/ --kubeconfig ./kubeconfig
  aioinformer serve --features minor=37,watch_list=false

The server prints its kubeconfig. With it run kubectl, aioinformer watch, the
examples or your program. The status of a changed Deployment reports a rollout.
Everything is in memory and ends with the server. It listens on 127.0.0.1 alone,
and refuses requests of web pages of other hosts. Every program and user of this
machine may read and write, unless --token is given.
"""

WATCH_EXAMPLES = """\
examples:
  aioinformer watch pods -n web -l app=shop
  aioinformer watch pod web-0 --events
  aioinformer watch deploy -A -o wide
  aioinformer watch certificates.cert-manager.io
  aioinformer watch pods -o fields=metadata.name,NODE:spec.nodeName
  aioinformer watch pods -A --server http://127.0.0.1:8001
  aioinformer watch pods -o fields="metadata.labels['app.kubernetes.io/name']"
  aioinformer watch cm -o json | jq -r '"\\(.type) \\(.object.metadata.name)"'

-o json prints a line {"type": ..., "object": ...} for each change. -o fields=
takes paths as in the library's field(); HEADING: names the column.
"""

WAIT_EXAMPLES = """\
examples:
  aioinformer wait deploy/web --for rollout --timeout 2m
  aioinformer wait pod web-0 --for condition=Ready
  aioinformer wait node/a --for condition=Ready=False
  aioinformer wait job/migrate --for job-complete --timeout 10m
  aioinformer wait ns/preview --for delete

The object may not exist yet, except that an absent object is deleted, as is one
that was created again under the same name. The exit code is 0 when the object
has reached the state, and 1 after the timeout.
"""

HEALTH_EXAMPLES = """\
examples:
  aioinformer health
  aioinformer health -A pods deployments widgets.example.com
  aioinformer health -o json | jq .resources
"""

SHARDS_EXAMPLES = """\
examples:
  aioinformer shards shop
  aioinformer shards shop -n web
  aioinformer shards shop -n web -o json | jq .unclaimed

The exit code is 0 if each shard has one owner, else 1. RENEWED compares the
member's clock with that of this machine.
"""

COMPLETION_EXAMPLES = """\
to complete in every new shell, add a line to the shell's start-up file:
  bash  ~/.bashrc                   eval "$(aioinformer completion bash)"
  zsh   ~/.zshrc, below compinit    eval "$(aioinformer completion zsh)"
  fish  ~/.config/fish/config.fish  aioinformer completion fish | source
"""
