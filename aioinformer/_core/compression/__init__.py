"""Hold cached objects at rest as zstd frames, in informers with ``compress=``.

    object at rest ──compressor──▶ the same object, compressed ──raw, field(), ...──▶ its JSON

zstd               the codecs of bodies: zstd of Python 3.14, or of ``backports.zstd``
compressor         the dictionary of one informer, and the objects that are worth compressing
references         one body as the reference of all objects of one owner
compressed_object  the class that an object has while it is compressed
"""
