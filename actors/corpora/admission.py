"""The door to an artifact: what a reader yields goes in once, or is refused, counted and kept."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Generic, TypeVar

from actors.corpora.lines import Reason, refused
from actors.corpora.records import BadInput, Document, Judgement, Query, Refused

Record = TypeVar("Record", bound=Document | Query | Judgement)

SHOWN = 10


class Admission(Generic[Record]):
    """Iterate once for the admitted records; `refused` and `counts()` grow meanwhile and are complete at the end.

    With `on_bad` "stop", `BadInput` is raised after the last record if any was refused, so that it lists all of them:
    only after the iteration has ended are the records good.
    """

    def __init__(
        self,
        records: Iterable[Record | Refused],
        node: str,
        on_bad: str,
        fault: Callable[[Record, Seen], Reason | None],
    ) -> None:
        self.refused: list[Refused] = []
        self._records = records
        self._node = node
        self._on_bad = on_bad
        self._fault = fault

    def __iter__(self) -> Iterator[Record]:
        seen = Seen()
        for record in self._records:
            if isinstance(record, Refused):
                self.refused.append(record)
            elif reason := self._fault(record, seen):
                self.refused.append(refused(record.where, reason, record[0]))
            else:
                yield record
        if self.refused and self._on_bad == "stop":
            raise BadInput(self._message())

    def counts(self) -> dict[str, int]:
        """How many records were refused, by reason, most frequent first."""
        return dict(Counter(each.reason for each in self.refused).most_common())

    def _message(self) -> str:
        counts, node = ", ".join(f"{count} {reason}" for reason, count in self.counts().items()), self._node
        shown = [f"  {each.where}: {each.reason}: {each.excerpt!r}" for each in self.refused[:SHOWN]]
        more = [f"  and {len(self.refused) - SHOWN} more"] if len(self.refused) > SHOWN else []
        head = f"{node}: {len(self.refused)} records cannot be used ({counts}); {node}.on_bad=stop expects none."
        return "\n".join([head, *shown, *more, f"Mend them, or leave them out with {node}.on_bad=skip."])


class Seen:
    """A set of ids in about 16 bytes each, whatever their length: an open-addressing table of 64-bit digests.

    Two different of n ids share a digest with probability n^2 / 2^65: 6e-7 for 4.6 million. The second would be refused
    as a duplicate, visibly.
    """

    def __init__(self) -> None:
        self._count = 0
        self._slots = array("Q", bytes(8 * 1024))

    def add(self, key: str) -> bool:
        """Whether the key is new."""
        # 0 marks a free slot.
        digest = int.from_bytes(blake2b(key.encode("utf-8"), digest_size=8).digest(), "little") or 1
        if not _insert(self._slots, digest):
            return False
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            self._double()
        return True

    def _double(self) -> None:
        larger = array("Q", bytes(16 * len(self._slots)))
        for digest in self._slots:
            if digest:
                _insert(larger, digest)
        self._slots = larger


def _insert(slots: array[int], digest: int) -> bool:
    last = len(slots) - 1
    slot = digest & last
    while found := slots[slot]:
        if found == digest:
            return False
        slot = (slot + 1) & last
    slots[slot] = digest
    return True


def admit(records: Iterable[Document | Refused], on_bad: str) -> Admission[Document]:
    """Documents with a text and an id that no admitted document has; a second one is refused, never merged."""
    return Admission(records, "corpus", on_bad, _document_fault)


def admit_queries(records: Iterable[Query | Refused], on_bad: str) -> Admission[Query]:
    """Queries with a text and an id that no admitted query has."""
    return Admission(records, "queries", on_bad, _query_fault)


def admit_judgements(records: Iterable[Judgement | Refused], on_bad: str) -> Admission[Judgement]:
    """Judgements, one for each pair of query and document; a second one is refused even where it says the same."""
    return Admission(records, "queries", on_bad, _judgement_fault)


def _document_fault(document: Document, seen: Seen) -> Reason | None:
    if not document.text.strip():
        return "empty text"
    return None if seen.add(document.doc_id) else "duplicate id"


def _query_fault(query: Query, seen: Seen) -> Reason | None:
    if not query.text.strip():
        return "empty text"
    return None if seen.add(query.query_id) else "duplicate id"


def _judgement_fault(judgement: Judgement, seen: Seen) -> Reason | None:
    # Ids hold no TAB, so two pairs never make the same key.
    return None if seen.add(f"{judgement.query_id}\t{judgement.doc_id}") else "duplicate judgement"
