"""One command: ``python -m examples.sample_controller``."""

from __future__ import annotations

from aioinformer import Client
from examples.sample_controller.controller import make_operator
from examples.sample_controller.settings import Settings

if __name__ == "__main__":
    settings = Settings.parse()
    make_operator(Client.connect(kubeconfig=settings.kubeconfig), settings).main()
