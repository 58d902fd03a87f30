"""Compress blocks of objects, for cache files.

zstd         the codecs of bodies: zstd of Python 3.14, or of ``backports.zstd``
block_codec  the compression of many bodies at once
"""
