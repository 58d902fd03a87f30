"""``aioinformer watch``: print objects, and then changes.

informer ──▶ command ──▶ formats ──▶ table | JSON | YAML | names
                            ▲
table_source ──▶ server_tables (the columns that the server prints)

command         the command
first_objects   the first objects of a list, to print before the list is complete
formats         the output formats
table           rows with aligned columns
columns         the cells of an object: server columns or chosen fields
server_tables   the server's own table of a resource
table_source    requests for that table
kube_events     Kubernetes Events about the watched objects
"""
