"""List and watch requests for one resource, into the DeltaFIFO.

ListerWatcher ──▶ reflector ──▶ delta_queue
                      └── watchdog (cancels an idle watch)

lister_watcher   the protocol of a source of lists and watches
reflector        carries out what the list/watch state machine decides: lists, reads watches
list_reader      reads one page of a list
watchdog         the timer of the idle timeout
poll_wait        the wait between lists, where the server refuses watches
delta_queue      the DeltaFIFO with waiting at both ends
options          the options of a reflector, as one frozen value
"""
