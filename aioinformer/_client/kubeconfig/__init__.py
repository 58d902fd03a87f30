"""Where a client connects to: kubeconfig files, or the pod's service account.

files ──▶ context ──▶ source ──▶ Credentials

source       the configuration in force, read again when it changes
context      one context: cluster, user and namespace
files        kubeconfig files, merged in kubectl's order
in_cluster   the service account of a pod
"""
