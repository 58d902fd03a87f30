"""``aioinformer watch``: print objects, and then changes.

informer ──▶ command ──▶ formats ──▶ table | JSON | YAML | names
                            ▲
table_source ──▶ server_tables (the columns that the server prints)
"""
