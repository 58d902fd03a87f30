"""A cluster behind HTTP on a loopback port, or in the place of a client.

socket ──▶ server ──▶ handlers ──▶ queries, objects ──▶ Cluster
informer ──▶ source ──▶ queries, objects ──▶ Cluster (no sockets)

server           the listening socket and its lifetime
server_thread    the same in a thread, for synchronous tests
handlers         the routes
foreign_pages    refusal of requests that web pages send
queries          query parameters of lists and watches
object_requests  requests for objects as values, and their bodies
field_validation  unknown and duplicate fields of sent objects
objects          requests for single objects, and deletions of collections
subresources     scale, eviction, tokens of service accounts
responses        responses, and errors as responses
request_driver   the time that passes within a request, with the faults that are on
source           ``ClusterSource``: a cluster in the place of a client
clock            the clock of a server, real or moved by a test
"""
