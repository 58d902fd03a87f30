"""The position of one durable listener."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster
from tests.runtime.informers import pod_informer


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"durable": ""}, TypeError, "durable must be a name, not ''"),
        ({"durable": 3}, TypeError, "durable must be a name, not 3"),
        ({"durable": "mail"}, UsageError, "durable='mail' needs a cache file: make the factory"),
    ],
)
def test_a_durable_name_that_can_not_be_kept_is_rejected(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    informer = pod_informer(Cluster())
    with pytest.raises(error, match=text):
        informer.add_handler(lambda event: None, **options)
    with pytest.raises(error, match=text):
        informer.events(**options)


def test_a_beginning_that_there_is_not_is_rejected() -> None:
    with pytest.raises(ValueError, match="'everything' or 'now', not 'yesterday'"):
        pod_informer(Cluster()).events(durable_since=cast("Any", "yesterday"))


def test_a_durable_handler_is_called_for_one_event_at_a_time() -> None:
    position = DurablePosition("mail", "now")

    assert HandlerOptions(position=position, concurrency=1).position is position
    with pytest.raises(UsageError, match=r"concurrency=1.*not 2"):
        HandlerOptions(position=position, concurrency=2)
