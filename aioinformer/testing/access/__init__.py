"""Users of a server and their rights.

request ──▶ access (token ──▶ user) ──▶ impersonated_user ──▶ rights (own rules, RBAC objects)
        ──▶ 403 or the handler
"""
