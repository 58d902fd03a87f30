"""Reads without an informer: lists by pages, and a watch that is resumed, for a program of its own.

ListerWatcher ──▶ object_list   pages of a list ──▶ ObjectList
              └─▶ object_watch  Reflector ──▶ DeltaQueue ──▶ async for

Nothing is cached. The bytes are decoded by the same decoders as those of an informer, and a watch
is kept alive by the same reflector.
"""
