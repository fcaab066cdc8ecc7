"""Texts compared with documents by vectors, on the toy; through the encoder's shell."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from actors import encoder as encoder_module
from actors.encoder import Encoder
from actors.index import Index
from actors.judges.judge import Ask
from conf import schema

DIRECTION = {"east": [1.0, 0.0], "north": [0.0, 1.0]}


async def direction(index: str, text: str) -> np.ndarray:
    return np.array(DIRECTION[text], np.float32)


@pytest.fixture
def encoder(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> Encoder:
    monkeypatch.setattr(encoder_module, "QueryEmbedder", lambda place: direction)
    encoder = Encoder(toy_index.answering.reranker, None)
    asyncio.run(encoder.start())
    return encoder


def test_one_cosine_for_each_text_and_document_the_first_text_s_first(toy_index: Index, encoder: Encoder) -> None:
    (scores,) = asyncio.run(encoder.answer([Ask(str(toy_index.folder), "q", "", [1, 0, 3], texts=["north", "east"])]))
    assert scores.values == pytest.approx([0.6, 0, 1, 0.8, 1, 0], abs=1e-3)
    assert (scores.outcome, scores.usage, scores.comparable) == ("ok", {"texts": 2}, True)


def test_an_answer_does_not_depend_on_its_batch_mates(toy_index: Index, encoder: Encoder) -> None:
    asks = [
        Ask(str(toy_index.folder), "q", "", rows, texts=texts) for rows, texts in (([0, 1], ["east"]), ([7], ["north", "east"]))
    ]
    assert asyncio.run(encoder.answer(asks)) == [asyncio.run(encoder.answer([ask]))[0] for ask in asks]


def test_the_encoder_of_a_replayed_reranker_replays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no answers\.parquet"):
        asyncio.run(Encoder(schema.ReplayJudge("replay", str(tmp_path), 0.0), None).start())
