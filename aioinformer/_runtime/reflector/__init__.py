"""List and watch requests for one resource, into the DeltaFIFO.

ListerWatcher ──▶ reflector ──▶ delta_queue
                      └── watchdog (cancels an idle watch)
"""
