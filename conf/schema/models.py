"""Models: an engine and all that changes its answers."""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.node import value


@dataclass
class VllmModel:
    engine: str = value("vllm: in the actor's own process", choices=("vllm",))
    name: str = value("name at a model hub, or the absolute path of a folder with weights and tokenizer")
    revision: str = value("revision at the hub; empty: the newest")
    dtype: str = value("of the weights", choices=("auto", "bfloat16", "float16", "float32"))
    quantization: str = value("empty: as the model's own configuration says")
    max_model_len: int = value("tokens of prompt and answer together", minimum=32)
    pooling: str = value("how token vectors become one (embedding); empty: as the model says", choices=("", "mean", "cls", "last"))
    thinking: bool = value("whether a model that can think before its answer may")


@dataclass
class OpenAIModel:
    engine: str = value("openai: an endpoint with OpenAI's interface", choices=("openai",))
    name: str = value("the model's name at the endpoint")
    url: str = value("base URL of the endpoint, ending in /v1", identity=False)
    key: str = value("environment variable that holds the API key; empty: no key", identity=False)
    max_model_len: int = value("tokens of prompt and answer together", minimum=32)
    thinking: bool = value("whether a model that can think before its answer may")
    tokenizer: str = value(
        "absolute path of a tokenizer.json or of a folder with one; empty: tokens are taken as 3 characters", identity=False
    )


Model = VllmModel | OpenAIModel
