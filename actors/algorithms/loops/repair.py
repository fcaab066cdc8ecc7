"""REPAIR (Kim et al., 2026): the reranker tells its plan, and one step of the plan chooses the next window's documents.

Paper (Algorithm 1) and published code agree on windows from left to right, on the plan of the window just ranked, on the base and
the consistency reward, on the candidates (the pool's next documents and the neighbours of the kept ones, the best by similarity
with the step), and on windows 6 to 9 of nine (Algorithm 1 counts the window before: 5 to 8). Where they leave a choice:
- Reward: the paper leaves its f (Eq. 8) open. The code takes the least of mean sigmoid(similarity) - beta * consistency, less alpha
  times an nDCG of the step's order against the reranker's. The paper has no such third term and it is left out: what stays is a
  weighted sum of Eq. 4 and Eq. 7, as in the code over the kept documents ("the top-ranked" of the paper's text). The order of
  "the ranking by this step alone" is that of the embedder's similarities (Appendix C).
- Preferences (Eq. 5): of all windows before the one just ranked, as in the paper; the code counts the first five windows only.
  It counts kept against dropped documents too; that would never be read here, where a dropped document does not return.
- Observed documents: the code lets dropped ones return as neighbours. Here they do not: the budget counts distinct documents.
- Neighbours: all that the graph holds (the code takes 16 of 32, and weighs them by their parents, which only equal similarities
  would show).
- Answer: all observed documents; the code keeps h and forgets the rest. A missing plan ends the code, and is the pool's turn here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import fmean

from actors.algorithms.loops.dialogue import (
    NEIGHBOURS,
    POOL,
    CorpusGraph,
    Iteration,
    Loop,
    Outcome,
    Pool,
    Reason,
    Reasoned,
    Similarity,
)
from actors.algorithms.loops.unobserved import Unobserved


def repair(
    pool: Pool,
    graph: CorpusGraph,
    excluded: Iterable[int],
    *,
    w: int,
    h: int,
    budget: int,
    first_adaptive: int,
    last_adaptive: int,
    base_weight: float,
    consistency_weight: float,
) -> Loop:
    """Find evidence for one query.

    w, h: window and keep size (the paper's b and k). budget: distinct documents shown to the reranker. first_adaptive to
    last_adaptive: the windows, counted from 1, that a step chooses. All others, and those without a step (no plan, or the embedder
    failed), take the pool's next documents; where it has too few, neighbours follow, the best document's first, nearest first.
    base_weight, consistency_weight: a step's reward is base_weight * Eq. 4 + consistency_weight * Eq. 7.
    """
    unobserved = Unobserved(graph, pool, excluded)
    gamma: Counter[tuple[int, int]] = Counter()  # how often one document was ranked above another
    fallen: list[int] = []
    iterations: list[Iteration] = []
    W = unobserved.pool[: min(w, budget)]
    ranked: list[int] = []
    while W:
        unobserved.observe(W if not iterations else iterations[-1].added)
        turn = Iteration(window=W)
        iterations.append(turn)
        ranked = _keep_plan(turn, (yield (Reason(W),))[0])  # one prompt for all windows, those whose plan has no use too
        kept = ranked[:h]
        count = min(w - h, budget - len(unobserved.observed))
        if count <= 0:
            break
        from_pool = unobserved.rest_of_pool()[:count]
        X = list(dict.fromkeys(from_pool + unobserved.neighbours_of(kept)))  # the candidates of Eq. 10
        if X and turn.steps and first_adaptive <= len(iterations) + 1 <= last_adaptive:
            turn.asked = 2
            (near,) = yield (Similarity(kept + X, turn.steps),)
            if near is not None:
                to_kept = [row[: len(kept)] for row in near]
                base = [base_weight * base_reward(row) for row in to_kept]
                consistency = [consistency_weight * consistency_reward(row, kept, gamma) for row in to_kept]
                turn.step = best_step([b + c for b, c in zip(base, consistency, strict=True)])
                X = _most_similar(X, near[turn.step][len(kept) :])
        if not X:
            break
        turn.added = X[:count]
        turn.added_from = [POOL if doc in from_pool else NEIGHBOURS for doc in turn.added]
        if not turn.rerank_failed:  # the order before ranking is nobody's preference
            gamma.update(combinations(kept, 2))
        W, fallen = kept + turn.added, ranked[h:] + fallen
    return Outcome(ranked + fallen, iterations)


def base_reward(near: Sequence[float]) -> float:
    """Eq. 4: the less similar the kept documents are to the step, the more it lacks. In (-1, 0); 0 without documents."""
    return -fmean(1 / (1 + math.exp(-similarity)) for similarity in near) if len(near) else 0.0


def consistency_reward(near: Sequence[float], kept: Sequence[int], gamma: Counter[tuple[int, int]]) -> float:
    """Eq. 5-7: the mean preference of the earlier windows for the pairs that the step puts in order. In (0, 1); 0.5 without pairs.

    near: similarity of the step with each kept document. Equal ones stay in the reranker's order.
    """
    order = _most_similar(kept, near)
    preferences = [1 / (1 + math.exp(gamma[q, p] - gamma[p, q])) for p, q in combinations(order, 2)]
    return fmean(preferences) if preferences else 0.5


def best_step(rewards: Sequence[float]) -> int:
    """Eq. 9: the first of the greatest. Rewards that differ by rounding alone are equal: sums of preferences often are."""
    rounded = [round(reward, 12) for reward in rewards]
    return rounded.index(max(rounded))


def _most_similar(docs: Sequence[int], near: Sequence[float]) -> list[int]:
    return [docs[i] for i in sorted(range(len(docs)), key=lambda i: -near[i])]


def _keep_plan(turn: Iteration, answer: Reasoned | None) -> list[int]:
    """Keep the order and the plan, and return the order."""
    turn.steps = [] if answer is None else list(answer.steps)
    return turn.keep_ranking(None if answer is None else answer.docs)
