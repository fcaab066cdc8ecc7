"""Prompts: a parsed template (part -> text), a query and documents become what a model is sent, within a number of tokens.

Fields are filled in one pass, so braces in a document are ordinary characters. No text of the corpus can end a turn or stand for a
document number: `<|im_end|>` and its like are broken up, and where documents are numbered, `[12]` in a text becomes `(12)`.
What does not fit is cut from the documents, evenly; the instruction, the query and the suffix always stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol, TypedDict

Template = Mapping[str, str]
CHAT_TOKENS = 64  # left free for what a chat template adds to the messages

# The interface of the Qwen3-Reranker models, character for character as their model cards prescribe it. Every deviation, the empty
# think block included, leaves scores that look plausible and mean nothing.
QWEN3_RERANKER_PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
QWEN3_RERANKER_CONTENT = "<Instruct>: {instruct}\n<Query>: {query}\n<Document>: {document}"
QWEN3_RERANKER_SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"

_FIELD = re.compile(r"\{([a-z_]+)\}")
_DOCUMENT_NUMBER = re.compile(r"\[(\s*\d+\s*)\]")
_CONTROL = re.compile(
    r"<(?=[|｜][\w▁]{1,40}[|｜]?>|[\w▁]{1,40}[|｜]>|/?(?:think|s|bos|eos|pad|unk|start_of_turn|end_of_turn)>)"
)  # the control tokens of the model families in use: <|im_end|>, <｜User｜>, <|turn>, <turn|>, </think>, <end_of_turn>, </s>


class Tokens(Protocol):
    """A model's tokenizer."""

    def count(self, text: str) -> int:
        """Tokens of `text`, control tokens among them, without those that a tokenizer adds by itself."""

    def cut(self, text: str, n: int) -> str:
        """The longest beginning of `text` of at most `n` tokens."""


class Limits(NamedTuple):
    """In tokens: of one document, of the query, and of all that is sent (a chat template's own tokens not counted)."""

    document: int
    query: int
    prompt: int


class Message(TypedDict):
    role: str
    content: str


class Prompt(NamedTuple):
    """What a model is sent: chat messages, or a string that has the model's interface in it already.

    cut: how many of its texts, the query among them, were shortened.
    """

    text: list[Message] | str
    cut: int


def listwise(template: Template, query: str, documents: Sequence[str], least: int, tokens: Tokens, limits: Limits) -> Prompt:
    """One window to be ranked: the documents are numbered [1]..[n]. least: how many must be ranked, all where there are fewer.

    Raises ValueError when the template and the query alone exceed `limits.prompt`.
    """
    asked = tokens.cut(_one_line(query), limits.query)
    known = {"query": asked, "n": str(len(documents)), "least": str(min(least, len(documents)))}
    prompt = _numbered(template, known, documents, tokens, limits)
    return prompt._replace(cut=prompt.cut + (asked != _one_line(query)))


def summary(template: Template, documents: Sequence[str], tokens: Tokens, limits: Limits) -> Prompt:
    """A group to be described from its documents or, with a template for it, from the descriptions of its parts.

    `limits.query` plays no part. Raises ValueError when the template alone exceeds `limits.prompt`.
    """
    return _numbered(template, {"n": str(len(documents))}, documents, tokens, limits)


def yes_no(template: Template, query: str, documents: Sequence[str], tokens: Tokens, limits: Limits) -> list[Prompt]:
    """One prompt per document, to be answered with yes or no; they are alike up to the document.

    A template that is one `instruct` part gives a string in the interface of Qwen3-Reranker; any other gives chat messages.
    Raises ValueError when everything but the document exceeds `limits.prompt`.
    """
    asked = tokens.cut(_harmless(query), limits.query)
    prompts = []
    for document in documents:
        render = _render_yes_no(template, asked)
        [kept] = _fit([tokens.cut(_harmless(document), limits.document)], render, tokens, limits.prompt)
        prompts.append(Prompt(render([kept]), (asked != _harmless(query)) + (kept != _harmless(document))))
    return prompts


def common_cap(lengths: Sequence[int], room: int) -> int:
    """The largest cap for which the sum of min(length, cap) is at most `room`: what all give evenly, the longest first.

    0 when there is no room; the greatest length when all fit.
    """
    ascending = sorted(lengths)
    before = accumulate(ascending, initial=0)
    for i, (length, shorter) in enumerate(zip(ascending, before, strict=False)):
        share = (room - shorter) // (len(ascending) - i)
        if share < length:
            return max(share, 0)
    return ascending[-1] if ascending else 0


def _numbered(template: Template, known: Mapping[str, str], documents: Sequence[str], tokens: Tokens, limits: Limits) -> Prompt:
    def render(texts: Sequence[str]) -> list[Message]:
        return _messages(template, {**known, "documents": "\n".join(f"[{i}] {text}" for i, text in enumerate(texts, 1))})

    whole = [_one_line(document) for document in documents]
    kept = _fit([tokens.cut(text, limits.document) for text in whole], render, tokens, limits.prompt)
    return Prompt(render(kept), sum(map(str.__ne__, kept, whole)))


def _render_yes_no(template: Template, query: str) -> Callable[[Sequence[str]], list[Message] | str]:
    def qwen3_reranker(texts: Sequence[str]) -> str:
        content = {"instruct": template["instruct"], "query": query, "document": texts[0]}
        return QWEN3_RERANKER_PREFIX + _filled(QWEN3_RERANKER_CONTENT, content) + QWEN3_RERANKER_SUFFIX

    def chat(texts: Sequence[str]) -> list[Message]:
        return _messages(template, {"query": query, "document": texts[0]})

    return qwen3_reranker if "instruct" in template else chat


def _messages(template: Template, fields: Mapping[str, str]) -> list[Message]:
    return [Message(role=role, content=_filled(template[role], fields)) for role in ("system", "user") if role in template]


def _filled(text: str, fields: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: fields[field[1]], text)


def _harmless(text: str) -> str:
    return _CONTROL.sub("< ", text.strip())


def _one_line(text: str) -> str:
    return _DOCUMENT_NUMBER.sub(r"(\1)", " ".join(_harmless(text).split()))


def _fit(texts: list[str], render: Callable[[Sequence[str]], list[Message] | str], tokens: Tokens, prompt_tokens: int) -> list[str]:
    """The texts, cut to a common cap when the prompt that is rendered from them exceeds `prompt_tokens`.

    The prompt itself is counted again after each cut: the tokens of a whole are not always the sum of its parts'.
    """

    def excess(kept: Sequence[str]) -> int:
        return _count(render(kept), tokens) - prompt_tokens

    if excess(texts) <= 0:
        return texts
    if (over := excess([""] * len(texts))) > 0:
        raise ValueError(
            f"a prompt of {prompt_tokens + over} tokens without any document, where {prompt_tokens} are allowed: "
            "allow more tokens per prompt, fewer per query, or use a model with a longer context"
        )
    lengths = [tokens.count(text) for text in texts]
    cap, kept = common_cap(lengths, -over), texts
    while (over := excess(kept := _capped(texts, lengths, cap, tokens))) > 0:
        cap -= -(-over // len(texts))
    return kept


def _capped(texts: list[str], lengths: list[int], cap: int, tokens: Tokens) -> list[str]:
    if cap <= 0:
        return [""] * len(texts)
    return [text if length <= cap else tokens.cut(text, cap) for text, length in zip(texts, lengths, strict=True)]


def _count(text: list[Message] | str, tokens: Tokens) -> int:
    return tokens.count(text) if isinstance(text, str) else sum(tokens.count(message["content"]) for message in text)
