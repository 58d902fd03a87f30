"""List and watch requests for one resource, into the DeltaFIFO.

ListerWatcher ──bytes──▶ reflector (by the decoders of _core.codec) ──deltas──▶ delta_queue
                             └── watchdog (cancels an idle watch)
"""
