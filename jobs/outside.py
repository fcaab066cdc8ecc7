"""The files that stages read from outside, beside those of corpus and queries: which they are, and their digests."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from actors.artifacts.store import sha256, write_text
from conf import schema


def brought(settings: schema.Settings, kind: str) -> dict[str, Path]:
    """The files that are brought for a kind of artifact: what -> path. The vectors of questions belong to the index."""
    embeddings, node = settings.embeddings, getattr(settings, kind, None)
    if kind == "run":
        first_stage = settings.first_stage.path if isinstance(settings.first_stage, schema.RunFirstStage) else ""
        named = {"neighbours": getattr(settings.loop, "neighbours", ""), "first_stage": first_stage}
        return {what: Path(path) for what, path in named.items() if path}
    if kind == "index" and isinstance(embeddings, schema.BroughtEmbeddings):
        return {"questions": Path(embeddings.queries)} if embeddings.queries else {}
    if isinstance(node, schema.BroughtGraph):
        return {what: Path(path) for what, path in (("neighbours", node.path), ("similarities", node.similarities)) if path}
    if isinstance(node, schema.BroughtEmbeddings | schema.BroughtGroups | schema.BroughtSummaries):
        return {kind: Path(node.path)}
    return {}


class Digests:
    """sha256 of files read from outside, remembered by path, size and time of change: a corpus of gigabytes is read once for it."""

    def __init__(self, root: Path) -> None:
        self._path = root / "digests.json"
        self._known: dict[str, list[str]] = {}
        with contextlib.suppress(OSError, ValueError):  # without it files are read again, and nothing else is different
            self._known = json.loads(self._path.read_text())

    def of(self, path: Path) -> str:
        """Digest of one file. Raises FileNotFoundError naming it."""
        stat = path.stat()
        state = f"{stat.st_size} {stat.st_mtime_ns}"
        state_and_digest = self._known.get(str(path))
        if state_and_digest is None or state_and_digest[0] != state:
            state_and_digest = self._known[str(path)] = [state, sha256(path)]
            with contextlib.suppress(OSError):  # an index is also searched where nothing can be written
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self._path, json.dumps(self._known, indent=1, sort_keys=True))
        return state_and_digest[1]

    def of_folder(self, folder: Path) -> str:
        """Digest of the names and contents of all files directly in a folder and below it."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        lines = "".join(f"{path.relative_to(folder)} {self.of(path)}\n" for path in files)
        return hashlib.sha256(lines.encode()).hexdigest()
