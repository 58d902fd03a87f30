"""The server and the credentials of a client, from kubeconfig files or a pod's service account.

files ──▶ context ──▶ source ──▶ Credentials

source      the credential source: finds files, and reads them again when they change
context     one context: cluster, user and namespace
files       kubeconfig files, merged in kubectl's order
in_cluster  the service account of a pod
form        the type of each field
go_yaml     YAML by the rules of Go's library
"""
