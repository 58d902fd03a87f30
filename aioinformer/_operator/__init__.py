"""The operator: a whole program around controllers, from the connection to the exit code.

Operator ──▶ ControllerBuilder ──▶ Controller (one for each term of leadership)
         ──▶ OperatorRun: client, informers, Events, leader election
         ──▶ process: signals, exit codes      probe_server: probes and metrics

    operator      the public class
    builder       the declaration of one controller, with resources by name
    options       the options of an operator
    run           one run: connections, terms of leadership, shutdown
    health        the public state of an operator
    probe_server  the HTTP server for probes and metrics
    process       the operator as a whole process
"""
