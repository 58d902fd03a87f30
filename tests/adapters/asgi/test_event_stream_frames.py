"""The frames of an event stream, read as a browser does: no object adds a frame or a field."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from aioinformer import KubeObject, SharedInformer
from aioinformer._runtime.delivery.streams import EventSource
from aioinformer.adapters.asgi import EventFeed
from tests.adapters.asgi_clients import connected
from tests.runtime.informers import running_informer
from tests.runtime.scripted_source import (
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
)

FORGED = 'event: deleted\ndata: {"name":"all"}\n\n'
BREAKS = {
    "line feed": "\n",
    "carriage return": "\r",
    "both": "\r\n",
    "empty line": "\n\n",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "next line": "\u0085",
    "form feed": "\f",
    "vertical tab": "\v",
    "file separator": "\x1c",
    "null": "\0",
    "byte order mark": "\ufeff",
}


class Message(NamedTuple):
    event: str
    data: str
    others: tuple[str, ...]


def read_as_a_browser(stream: bytes) -> list[Message]:
    """Return the messages of a stream by the rules of the HTML standard (9.2.6)."""
    found: list[Message] = []
    event, data, others = "", list[str](), list[str]()
    for line in re.split(r"\r\n|\r|\n", stream.decode().removeprefix("\ufeff")):
        if not line:
            if data:
                found.append(Message(event or "message", "\n".join(data), tuple(others)))
            event, data, others = "", [], []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif name:  # without a name it is a comment
            others.append(name)
    return found


def whole(informer: EventSource, obj: KubeObject) -> bytes:
    return obj.raw


def indented(informer: EventSource, obj: KubeObject) -> str:
    return json.dumps(obj.to_dict(), indent=1, ensure_ascii=False)


def of_carriage_returns(informer: EventSource, obj: KubeObject) -> str:
    return indented(informer, obj).replace("\n", "\r")


def failing(informer: EventSource, obj: KubeObject) -> bytes:
    raise ValueError(obj.name)


@pytest.mark.parametrize(
    ("options", "event"),
    [
        ({}, "added"),
        ({"encode": whole}, "added"),
        ({"encode": indented}, "added"),
        ({"encode": of_carriage_returns}, "added"),
        ({"encode": failing}, "failed"),
    ],
    ids=["metadata", "raw", "indented", "carriage returns", "failed"],
)
@pytest.mark.parametrize("separator", BREAKS.values(), ids=BREAKS)
async def test_an_object_is_one_message_whatever_its_texts_contain(
    separator: str, options: dict[str, Any], event: str
) -> None:
    text = f"a{separator}{FORGED}"
    metadata = {"name": text, "namespace": text, "uid": text, "resourceVersion": "5"}
    body = {"metadata": metadata | {"labels": {text: text}}, "data": {text: text}}
    state = list_response(json.dumps(body, ensure_ascii=False), version="7")
    pods = SharedInformer(scripted_lister_watcher(state, watch_response(never_ends=True)))
    async with (
        running_informer(pods),
        connected(EventFeed(lambda: [pods], **options), synced=False) as client,
    ):
        await wait_until(lambda: b"event: synced" in client.body)
        messages = read_as_a_browser(client.body)

    assert [each.event for each in messages] == ["reset", event, "synced"]
    shown = messages[1]
    assert not shown.others
    data = json.loads(shown.data)
    assert (data.get("metadata") or data)["name"] == text
