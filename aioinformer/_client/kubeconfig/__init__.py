"""The server and the credentials of a client, from kubeconfig files or a pod's service account.

files ──▶ context ──▶ kubeconfig ──▶ Credentials
"""
