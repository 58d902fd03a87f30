"""What ``--help`` says beside the options: what each command is for, examples, exit codes.

Texts alone, in lines of eighty columns at most. What the options mean stands where they are
defined, in ``arguments``.
"""

from __future__ import annotations

__all__ = [
    "COMPLETION",
    "COMPLETION_EXAMPLES",
    "DEMO",
    "EPILOG",
    "HEALTH",
    "HEALTH_EXAMPLES",
    "WATCH",
    "WATCH_EXAMPLES",
]

EPILOG = """\
start with:
  aioinformer demo            needs no cluster
  aioinformer health          what a cluster lets you do
  aioinformer watch pods -A   the cluster of your kubeconfig, as it changes

exit codes:
  0             done; health: everything that was looked at works
  1             the server could not be asked; demo: the cache differs from it;
                health: something does not work
  2             not possible as asked: arguments, cluster, selector, resource
  130, 143      interrupted (SIGINT), terminated (SIGTERM)
  141           nobody reads the output any more
"""

DEMO = "show an informer at work against an API server in this process; needs no cluster"
WATCH = "print what there is of a resource in a cluster, then each change as it comes"
HEALTH = "check a cluster: who asks, how fast it answers, what can be listed and watched"
COMPLETION = "print what makes a shell complete this command's lines"

WATCH_EXAMPLES = """\
examples:
  aioinformer watch pods -n web -l app=shop
  aioinformer watch pod web-0 --events
  aioinformer watch deploy -A -o wide
  aioinformer watch certificates.cert-manager.io
  aioinformer watch pods -o fields=metadata.name,NODE:spec.nodeName
  aioinformer watch pods -o fields="metadata.labels['app.kubernetes.io/name']"
  aioinformer watch cm -o json | jq -r '"\\(.type) \\(.object.metadata.name)"'

json is a line of {"type": ..., "object": ...} for each change. What -o fields=
takes are paths as in the library's field(); HEADING: before one names it.
"""

HEALTH_EXAMPLES = """\
examples:
  aioinformer health
  aioinformer health -A pods deployments widgets.example.com
  aioinformer health -o json | jq .resources
"""

COMPLETION_EXAMPLES = """\
to have it in every new shell, put into its start-up file:
  bash  ~/.bashrc                   eval "$(aioinformer completion bash)"
  zsh   ~/.zshrc, below compinit    eval "$(aioinformer completion zsh)"
  fish  ~/.config/fish/config.fish  aioinformer completion fish | source
"""
