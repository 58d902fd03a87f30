"""Users of a server and their rights.

request ──▶ access (token ──▶ user) ──▶ impersonation ──▶ rights (own rules, RBAC objects)
        ──▶ 403 or the handler
"""
