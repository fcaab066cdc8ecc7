"""Retrieval measures, by trec_eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytrec_eval

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]


WITH_CUT = ("P", "map_cut", "ndcg_cut", "recall", "success")
WHOLE = ("Rprec", "bpref", "map", "ndcg", "recip_rank", "set_F", "set_P", "set_map", "set_recall")


def evaluate(qrels: Qrels, run: Run, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """query_id -> measure -> value, for every query that has a relevant document; a query without an answer has 0 in all of them.

    measures: trec_eval's names with their cut, such as `ndcg_cut_10`. Raises ValueError naming one that is not known.
    """
    judged = {query_id: dict(docs) for query_id, docs in qrels.items() if any(r > 0 for r in docs.values())}
    families = {_family(measure) for measure in measures}
    found = pytrec_eval.RelevanceEvaluator(judged, families).evaluate({q: dict(run.get(q, {})) for q in judged})
    return {q: {m: float(found.get(q, {}).get(m, 0.0)) for m in measures} for q in judged}


def check(measures: Sequence[str]) -> None:
    """Raise ValueError naming the first measure that is not known, or saying that there is none."""
    if not measures:
        raise ValueError("metrics.measures: there is none; expected one or more, for example [ndcg_cut_10,recall_100].")
    for measure in measures:
        _family(measure)


def _family(measure: str) -> str:
    """As pytrec_eval writes it: the cut after a dot. A cut that does not fit its measure would end the process without a word."""
    name, _, cut = measure.rpartition("_")
    if measure in WHOLE:
        return measure
    if name in WITH_CUT and cut.isdecimal() and cut == str(int(cut)) != "0":
        return f"{name}.{cut}"
    known = ", ".join([*(f"{name}_<documents>" for name in WITH_CUT), *WHOLE])
    raise ValueError(f"metrics.measures: {measure!r} is not known; expected one of {known}, for example ndcg_cut_10.")


def mean(per_query: Mapping[str, Mapping[str, float]], measures: Sequence[str]) -> dict[str, float]:
    """Mean of each measure over the queries, summed in the order of their ids; 0 of none."""
    return {m: sum(per_query[q][m] for q in sorted(per_query)) / max(len(per_query), 1) for m in measures}
