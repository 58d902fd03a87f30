"""The load: bytes that are written beforehand, servers that send them, and processes that read.

    pods, workloads (bytes) ──scratch (files)──▶ server, paced_server ──HTTP──▶ what is measured

All contestants read the same bytes. ``processes`` starts the servers and the measured programs, and
``meter`` takes the time and the memory of the process that it runs in.
"""
