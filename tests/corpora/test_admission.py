from collections import Counter

import pytest
from hypothesis import given, strategies as st

from actors.corpora.admission import Seen, admit, admit_judgements, admit_queries
from actors.corpora.records import BadInput, Document, Judgement, Query, Refused

RECORDS = [
    Document("a", "one", "f:1"),
    Refused("f:2", "not JSON", "{"),
    Document("a", "two", "f:3"),
    Document("b", " \n", "f:4"),
    Document("b", "three", "f:5"),
    Document("a", "four", "f:6"),
]
EXPECTED = [
    Refused("f:2", "not JSON", "{"),
    Refused("f:3", "duplicate id", "a"),
    Refused("f:4", "empty text", "b"),
    Refused("f:6", "duplicate id", "a"),
]


def test_skip_goes_on_and_keeps_every_refusal() -> None:
    admission = admit(RECORDS, "skip")
    assert list(admission) == [RECORDS[0], RECORDS[4]]
    assert admission.refused == EXPECTED
    assert list(admission.counts().items()) == [("duplicate id", 2), ("not JSON", 1), ("empty text", 1)]


def test_stop_raises_after_everything_has_been_read() -> None:
    admission, admitted = admit(RECORDS, "stop"), []
    with pytest.raises(BadInput) as raised:
        for each in admission:
            admitted.append(each)
    assert admitted == [RECORDS[0], RECORDS[4]]
    assert admission.refused == EXPECTED
    assert str(raised.value).splitlines() == [
        "corpus: 4 records cannot be used (2 duplicate id, 1 not JSON, 1 empty text); corpus.on_bad=stop expects none.",
        "  f:2: not JSON: '{'",
        "  f:3: duplicate id: 'a'",
        "  f:4: empty text: 'b'",
        "  f:6: duplicate id: 'a'",
        "Mend them, or leave them out with corpus.on_bad=skip.",
    ]


def test_the_message_shows_ten() -> None:
    with pytest.raises(BadInput) as raised:
        list(admit_queries([Refused(f"f:{n}", "no id", "") for n in range(1, 14)], "stop"))
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("queries: 13 records cannot be used (13 no id)")
    assert lines[10:] == ["  f:10: no id: ''", "  and 3 more", "Mend them, or leave them out with queries.on_bad=skip."]


def test_stop_is_silent_when_all_is_well() -> None:
    assert list(admit(RECORDS[:1], "stop")) == RECORDS[:1]


def test_queries_need_a_text_and_an_id_of_their_own() -> None:
    admission = admit_queries([Query("1", "t", (), "q:1"), Query("1", "u", (), "q:2"), Query("2", "", (), "q:3")], "skip")
    assert [each.where for each in admission] == ["q:1"]
    assert [each[:2] for each in admission.refused] == [("q:2", "duplicate id"), ("q:3", "empty text")]


def test_a_pair_is_judged_once() -> None:
    pairs = [("q", "d", 1), ("q", "e", 1), ("r", "d", 1), ("q", "d", 2), ("q", "e", 1), ("q d", "", 1)]
    admission = admit_judgements((Judgement(*pair, f"r:{n}") for n, pair in enumerate(pairs, 1)), "skip")
    assert [each.where for each in admission] == ["r:1", "r:2", "r:3", "r:6"]
    assert [each[:2] for each in admission.refused] == [("r:4", "duplicate judgement"), ("r:5", "duplicate judgement")]


def test_records_pass_one_at_a_time() -> None:
    taken = []
    source = (taken.append(n) or Document(str(n), "t", f"f:{n}") for n in range(9))
    passed = iter(admit(source, "stop"))
    next(passed), next(passed)
    assert taken == [0, 1]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=2)))
def test_every_id_is_admitted_once(ids: list[str]) -> None:
    admission = admit((Document(doc_id, "t", "f:1") for doc_id in ids), "skip")
    assert [each.doc_id for each in admission] == list(dict.fromkeys(ids))
    assert Counter(each.reason for each in admission.refused) == Counter({"duplicate id": len(ids) - len(set(ids))})


def test_a_set_that_has_grown_forgets_nothing() -> None:
    seen = Seen()
    assert all(seen.add(f"d{n}") for n in range(20_000))
    assert not any(seen.add(f"d{n}") for n in range(20_000))
    assert seen.add("d20000")
