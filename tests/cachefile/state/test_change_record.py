"""The newest state of each changed object."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, ObjectKey
from aioinformer.cachefile.state.change_record import ChangeRecord
from tests.core.builders import pod


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=4)
        ),
        max_size=8,
    )
)
def test_the_record_holds_the_last_state_of_each_key_in_any_mix_of_steps_and_lists(
    batches: list[tuple[bool, list[tuple[str, bool]]]],
) -> None:
    record, expected, version = ChangeRecord(), dict[ObjectKey, KubeObject | None](), 0
    for listed, changes in batches:
        events: list[Event] = []
        for name, exists in changes:
            version += 1
            obj = pod(name, rv=str(version))
            events.append(Added(obj) if exists else Deleted(obj))
            expected[obj.key] = obj if exists else None
        if listed:
            record.record_list([events[:1], events[1:]])
        else:
            record.record(events)
    while not record.step():
        pass
    assert record.changes == expected
    assert len(record) == len(expected)


def test_the_changes_of_a_list_and_those_after_it_are_recorded_in_steps() -> None:
    record = ChangeRecord()
    old, new = pod("a", rv="1"), pod("a", rv="2")
    record.record_list([[Added(old)]])
    record.record([Added(new)])
    assert record.changes == {}
    assert not record.step()
    assert record.step()
    assert record.changes == {old.key: new}
    record.clear()
    assert len(record) == 0
    assert repr(record) == "<ChangeRecord changes=0>"


def test_changes_that_are_not_recorded_yet_are_counted_one_by_one() -> None:
    record = ChangeRecord()
    record.record([Added(pod("a")), Added(pod("a", rv="2")), Added(pod("b"))])
    record.record_list([[Added(pod("c")), Added(pod("d"))], [Added(pod("a", rv="3"))]])
    assert len(record) == 5
    record.clear()
    assert record.step()
    assert record.changes == {}
