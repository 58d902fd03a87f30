"""Users of a server and their rights.

request ──▶ access (token ──▶ user) ──▶ impersonation ──▶ rights (own rules, RBAC objects)
        ──▶ 403 or the handler

users     ``User`` and ``PolicyRule``: who sends a request, and the rules of a user
rights    the decision: rules of the user, Roles and bindings in the cluster
escalation   roles and bindings that give more rights than their writer has
access    ``Access``: the users of a server by their tokens
impersonation   the user in whose name another one sends a request
tokens    tokens of service accounts
reviews   answers to SelfSubjectAccessReview, SelfSubjectReview and their like
"""
