"""HTTP: the only package of the library that connects to a real API server.

    Client ──▶ api ──▶ http ──▶ kube-apiserver
                         ├── auth         credentials for every request
                         └── discovery    resource names to URLs
    kubeconfig ──▶ Client.connect

    client       ``Client``, which a program opens
    api          lists, watches and writes of one resource, and the request schedule
    http         requests, connections, and the mapping of their failures to errors
    auth         tokens, certificates, exec plugins, redaction of secrets
    kubeconfig   kubeconfig files and in-cluster configuration
    discovery    the resources that a server serves

The package doesn't depend on informers and caches. The runtime uses it only through the protocols
``ListerWatcher`` and ``ResourceWriter``.
"""
