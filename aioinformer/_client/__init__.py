"""HTTP: the only package that talks to a real API server.

    Client ──▶ api ──▶ http ──▶ kube-apiserver
                         ├── auth         credentials for every request
                         └── discovery    resource names to URLs
    kubeconfig ──▶ Client.connect

    client       the class that a program opens
    api          lists, watches and writes of one resource, and the request schedule
    http         requests, connections, errors of HTTP as our errors
    auth         tokens, certificates, exec plugins, redaction of secrets
    kubeconfig   kubeconfig files and in-cluster configuration
    discovery    the resources that a server serves

Tasks and caches are not known here: the runtime sees the protocols ``ListerWatcher`` and
``ResourceWriter`` only.
"""
