"""The command ``python -m aioinformer.testing``: the same as ``aioinformer serve``."""

from __future__ import annotations

import sys

from aioinformer.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
