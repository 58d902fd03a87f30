"""Events that repeat: which are sent, and with which count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioinformer.eventrecorder.state.event_objects import (
    EventRecord,
    ObjectReference,
    ReportingController,
    format_stamp,
)
from aioinformer.eventrecorder.state.event_series import (
    BURST,
    FINISH_TIME,
    REFRESH_TIME,
    EventSeries,
    EventSeriesTracker,
    PendingEvent,
)

REPORTER = ReportingController("foo", "foo-1")
SECOND = 1_000_000_000


def event(name: str = "web-0", reason: str = "Seen") -> EventRecord:
    return EventRecord(ObjectReference("v1", "Pod", "web", name, "u"), "Normal", reason)


class Server:
    """Sends everything at once; remembers the counts by name."""

    def __init__(self, *, entries: int = 4096) -> None:
        self.aggregation = EventSeriesTracker(entries=entries)
        self.counts: dict[str, int] = {}
        self.requests: list[PendingEvent] = []

    def happens(self, occurrence: EventRecord, now: float) -> list[PendingEvent]:
        return self.send(self.aggregation.observe(occurrence, int(now * SECOND), now))

    def passes(self, now: float) -> list[PendingEvent]:
        return self.send(self.aggregation.take_due(now))

    def send(self, entries: list[EventSeries]) -> list[PendingEvent]:
        drafts: list[PendingEvent] = []
        for entry in entries:
            draft = entry.pending_event(REPORTER)
            if draft is not None:
                entry.record_sent(draft)
                self.counts[draft.name] = draft.count
                drafts.append(draft)
        self.requests += drafts
        return drafts


def test_a_record_after_the_quiet_time_starts_a_new_event_without_take_due() -> None:
    server = Server()
    for n in range(4):
        server.happens(event(), float(n))
    old, new = server.happens(event(), 3 + FINISH_TIME)
    assert (old.count, old.is_new) == (4, False)
    assert (new.count, new.is_new) == (1, True)


def test_records_during_a_request_are_part_of_the_next_count() -> None:
    aggregation = EventSeriesTracker()
    (entry,) = aggregation.observe(event(), SECOND, 1.0)
    assert aggregation.observe(event(), 2 * SECOND, 2.0) == []
    draft = entry.pending_event(REPORTER)
    assert draft is not None
    assert draft.is_new
    assert draft.body["series"]["count"] == 2


def test_event_names_differ_if_the_clock_does_not_advance() -> None:
    aggregation = EventSeriesTracker()
    stamps = (5, 5, 3)
    made = [aggregation.observe(event(reason=f"R{n}"), at, 1.0)[0] for n, at in enumerate(stamps)]
    assert len({entry.name for entry in made}) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.sampled_from([0.0, 1.0, 100.0, FINISH_TIME, REFRESH_TIME])
        ),
        max_size=60,
    ),
    st.integers(1, 4),
)
def test_every_record_is_sent_in_the_end_or_filtered(
    history: list[tuple[str, float]], entries: int
) -> None:
    """The result is the same for every order and time of records, and every limit of series."""
    server, now = Server(entries=entries), 0.0
    for reason, pause in history:
        now += pause
        server.passes(now)
        server.happens(event(reason=reason), now)
        assert len(server.aggregation) <= entries
    server.send(server.aggregation.close())
    assert sum(server.counts.values()) + server.aggregation.filtered == len(history)
    assert len({draft.name for draft in server.requests if draft.is_new}) == len(server.counts)


def test_an_event_that_the_server_deleted_is_created_again_with_its_count() -> None:
    server = Server()
    (first,) = server.happens(event(), 1.0)
    server.happens(event(), 2.0)
    assert server.aggregation.close() == [], "the server has everything"

    tracker = EventSeriesTracker()
    (series,) = tracker.observe(event(), 1 * SECOND, 1.0)
    draft = series.pending_event(REPORTER)
    assert draft is not None
    created = [series.created]
    series.record_sent(draft)
    created.append(series.created)
    assert created == [False, True]
    assert series.pending_event(REPORTER) is None
    tracker.observe(event(), 2 * SECOND, 2.0)
    series.record_deleted()
    again = series.pending_event(REPORTER)

    assert again is not None
    assert (again.is_new, again.count, again.name) == (True, 2, draft.name)
    series_part = {"series": {"count": 2, "lastObservedTime": format_stamp(2 * SECOND)}}
    assert again.body == draft.body | series_part
    assert first.name == draft.name


def test_a_series_that_the_server_did_not_accept_starts_anew() -> None:
    tracker = EventSeriesTracker()
    (series,) = tracker.observe(event(), 1, 1.0)
    (other,) = tracker.observe(event("web-1"), 2, 1.0)
    tracker.forget(series)
    tracker.forget(series)
    assert len(tracker) == 1

    (anew,) = tracker.observe(event(), 3, 2.0)
    assert anew is not series
    tracker.forget(series)
    assert len(tracker) == 2, "the new series of that key stays"
    assert other.count == 1


def test_an_older_request_does_not_lower_the_count_that_was_sent() -> None:
    tracker = EventSeriesTracker()
    (series,) = tracker.observe(event(), 1, 1.0)
    first = series.pending_event(REPORTER)
    tracker.observe(event(), 2, 2.0)
    second = series.pending_event(REPORTER)
    assert first is not None
    assert second is not None
    series.record_sent(second)
    series.record_sent(first)

    assert (series.unsent, series.pending_event(REPORTER)) == (0, None)


def test_the_reprs_count_series_and_events() -> None:
    tracker = EventSeriesTracker()
    (series,) = tracker.observe(event(), 1, 1.0)
    assert repr(tracker) == "<EventSeriesTracker 1 event, 0 series, 0 filtered>"
    draft = series.pending_event(REPORTER)
    assert draft is not None
    series.record_sent(draft)
    assert tracker.observe(event(), 2, 2.0) == [series]

    assert repr(tracker) == "<EventSeriesTracker 1 event, 1 series, 0 filtered>"
    assert repr(series).endswith("×2, 1 unsent>")


def test_the_oldest_of_too_many_objects_has_all_its_tokens_again() -> None:
    tracker = EventSeriesTracker(entries=1)
    for number in range(BURST):
        assert tracker.observe(event(reason=f"r{number}"), number, 1.0)
    assert tracker.observe(event(reason="over"), 1, 1.0) == []
    assert tracker.filtered == 1
    tracker.observe(event("web-1"), 2, 1.0)

    assert tracker.observe(event(reason="again"), 3, 1.0)


def test_the_count_of_an_ended_series_is_sent_before_a_new_event() -> None:
    server = Server()
    server.happens(event(), 0.0)
    server.happens(event(), 1.0)
    server.happens(event(), 2.0)
    over, anew = server.happens(event(), 2.0 + FINISH_TIME)

    assert (over.is_new, over.count) == (False, 3)
    assert (anew.is_new, anew.count) == (True, 1)


def test_records_a_nanosecond_apart_keep_their_times() -> None:
    tracker = EventSeriesTracker()
    names = [
        tracker.observe(event(reason=r), at, 1.0)[0].name
        for r, at in zip("abcd", (5, 6, 6, 9), strict=True)
    ]
    assert names == ["web-0.5", "web-0.6", "web-0.7", "web-0.9"]


def test_a_repeated_event_of_an_object_without_tokens_is_sent_when_it_is_over() -> None:
    server = Server()
    for number in range(BURST):
        server.happens(event(reason=f"R{number}"), 1.0)
    assert server.happens(event(reason="R0"), 2.0) == []
    assert server.aggregation.filtered == 0, "the record is counted"
    (draft,) = server.passes(2.0 + FINISH_TIME)
    assert (draft.is_new, draft.count) == (False, 2)


def test_a_forgotten_series_leaves_no_entry() -> None:
    server = Server()
    for now in (1.0, 2.0, 3.0):
        server.happens(event(), now)
    series = server.aggregation.observe(event("web-1"), 4, 3.0)
    tracker = server.aggregation
    assert repr(tracker) == "<EventSeriesTracker 2 events, 1 series, 0 filtered>"
    for entry in series:
        tracker.forget(entry)
    (unsent,) = tracker.close()
    assert unsent.unsent == 1
    assert repr(tracker) == "<EventSeriesTracker 0 events, 0 series, 0 filtered>"
    assert tracker.take_due(3.0 + REFRESH_TIME) == []


def test_a_forgotten_series_is_not_refreshed() -> None:
    tracker = EventSeriesTracker()
    (series,) = tracker.observe(event(), 1, 1.0)
    draft = series.pending_event(REPORTER)
    assert draft is not None
    series.record_sent(draft)
    assert tracker.observe(event(), 2, 2.0) == [series]
    tracker.forget(series)
    assert series.unsent == 1
    assert tracker.take_due(2.0 + REFRESH_TIME) == []
    assert repr(tracker) == "<EventSeriesTracker 0 events, 0 series, 0 filtered>"


def test_as_many_series_are_remembered_as_allowed_and_the_oldest_is_evicted() -> None:
    server = Server(entries=2)
    for number in (0, 1, 0, 0, 2, 1):
        server.happens(event(reason=f"R{number}"), 1.0)
        assert len(server.aggregation) <= 2
    sent = [(draft.body.get("reason"), draft.count) for draft in server.requests]
    # R1 was the oldest when R2 came, and R0 when R1 came again, with a count that was not sent.
    assert sent == [("R0", 1), ("R1", 1), (None, 2), ("R2", 1), ("R1", 1), (None, 3)]
    assert len(server.aggregation) == 2
