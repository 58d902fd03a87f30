"""The list/watch state machine: the choice of the next request.

outcome of a request ──▶ state_machine ──transitions──▶ next request and the wait before it

requests         list, watch and discovery requests as values
outcomes         the classification of every end of a request
transitions      the table: state and outcome to next request and wait
state_machine    the state of one reflector, which applies the table
page_sequence    the pages of one list, which must come to an end
server_profile   server behaviour learned per resource: WatchList support, bookmark interval
idle_timeout     the time without data after which a watch is cancelled
confirmation     the proof that a restored state is the server's
availability     the state of a resource that the server stopped serving
polling          the refresh by lists where the server refuses watches
backoff          exponential backoff with jitter
rate_limit       the request rate that all informers of a client share
"""
