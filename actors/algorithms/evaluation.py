"""Retrieval measures, by trec_eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytrec_eval

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]


def evaluate(qrels: Qrels, run: Run, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """query_id -> measure -> value, for every query that has a relevant document; a query without an answer has 0 in all of them.

    measures: trec_eval's names with their cut, such as `ndcg_cut_10`. Raises ValueError naming one that trec_eval does not know.
    """
    judged = {query_id: dict(docs) for query_id, docs in qrels.items() if any(r > 0 for r in docs.values())}
    for measure in measures:
        family = next((f for f in pytrec_eval.supported_measures if measure == f or measure.startswith(f + "_")), None)
        if family is None:
            known = ", ".join(sorted(pytrec_eval.supported_measures))
            raise ValueError(f"metrics.measures: trec_eval has no {measure!r}; expected one of {known}, with a cut such as _10 where it takes one.")
    families = {m.rpartition("_")[0] + "." + m.rpartition("_")[2] if m.rpartition("_")[2].isdigit() else m for m in measures}
    found = pytrec_eval.RelevanceEvaluator(judged, families).evaluate({q: dict(run.get(q, {})) for q in judged})
    return {q: {m: float(found.get(q, {}).get(m, 0.0)) for m in measures} for q in judged}


def mean(per_query: Mapping[str, Mapping[str, float]], measures: Sequence[str]) -> dict[str, float]:
    """Mean of each measure over the queries, summed in the order of their ids; 0 of none."""
    return {m: sum(per_query[q][m] for q in sorted(per_query)) / max(len(per_query), 1) for m in measures}
