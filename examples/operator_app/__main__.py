"""One command: ``python -m examples.operator_app``, until SIGTERM or Ctrl-C."""

from aioinformer import Client
from aioinformer.adapters.prometheus import PrometheusMetrics
from examples.operator_app.app import make_operator
from examples.operator_app.delivery_network import purge

if __name__ == "__main__":
    make_operator(Client.connect(), purge, metrics=PrometheusMetrics(), port=8080).main()
