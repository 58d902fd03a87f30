"""HTTP: the only package of the library that connects to a real API server.

    Client ──▶ api ──▶ http ──▶ kube-apiserver
                         ├── auth         credentials for every request
                         └── discovery    resource names to URLs
    kubeconfig ──▶ Client.connect

The package doesn't depend on informers and caches. The runtime uses it only through the protocols
``ListerWatcher`` and ``ResourceWriter``.
"""
