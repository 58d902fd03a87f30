"""Deltas to an indexed cache, and the reads from it.

deltas ──▶ delta_fifo ──▶ indexer ──▶ store + indexes ◀── lister ◀── query
                             └──▶ events
"""
