"""How long a text is for a model behind an endpoint: by its tokenizer.json, or estimated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from actors.algorithms.prompts import Tokens
from actors.corpora.records import BadInput

if TYPE_CHECKING:
    import tokenizers

BYTES_PER_TOKEN = 3


class EstimatedTokens:
    """3 bytes of UTF-8 a token, so 3 characters of English, where models use 4 and more, and one of Chinese.

    It errs to the safe side on prose. Rows of digits and rare scripts can be longer than it says: for those, name the tokenizer.
    """

    def count(self, text: str) -> int:
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)

    def cut(self, text: str, n: int) -> str:
        return text.encode("utf-8", "replace")[: max(n, 0) * BYTES_PER_TOKEN].decode("utf-8", "ignore")


class FileTokens:
    """The tokens of a tokenizer.json, control tokens counted as one each."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    @property
    def marks(self) -> int:
        """Tokens that it adds around a text by itself when the text is embedded."""
        return int(self._tokenizer.num_special_tokens_to_add(is_pair=False))

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def cut(self, text: str, n: int) -> str:
        """Counted again after the cut: a beginning can have other tokens than it had in the whole."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= n:
            return text
        for _, end in reversed(offsets[: max(n, 0)]):
            if self.count(text[:end]) <= n:
                return text[:end]
        return ""


def marks_of(tokens: Tokens) -> int:
    """Tokens that a model's tokenizer adds around a text by itself; taken as none where tokens are estimated."""
    return tokens.marks if isinstance(tokens, FileTokens) else 0


def load_tokens(tokenizer: str) -> Tokens:
    """The tokens of a tokenizer.json or of a folder that holds one; estimated where `tokenizer` is empty. Raises BadInput."""
    if not tokenizer:
        return EstimatedTokens()
    path = Path(tokenizer) / "tokenizer.json" if Path(tokenizer).is_dir() else Path(tokenizer)
    if not path.is_absolute() or not path.is_file():
        raise BadInput(
            f"tokenizer = {tokenizer!r}: expected the absolute path of a tokenizer.json, or of a folder that holds one, on every "
            "machine that calls the endpoint; or leave it empty: tokens are then estimated"
        )
    try:
        from tokenizers import Tokenizer

        return FileTokens(Tokenizer.from_file(str(path)))
    except ImportError as missing:
        raise BadInput(f"tokenizer = {tokenizer!r} needs the package tokenizers: install it, or leave tokenizer empty") from missing
    except Exception as broken:  # what the package raises has no class of its own
        raise BadInput(f"tokenizer = {tokenizer!r}: {path} is no tokenizer.json ({broken}); fetch it again") from broken
