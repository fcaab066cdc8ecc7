"""From YAML to checked dataclasses. Jobs call `load(cfg)` on their first line; nothing beyond it sees omegaconf."""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, OmegaConf

from conf import schema, templates


class BadConfig(Exception):
    """A configuration that cannot be used. The message names the key, its value, what was expected, and what to do."""

    def __init__(self, key: str, value: object, expected: str, remedy: str) -> None:
        super().__init__(f"{key}={value!r}: expected {expected}. {remedy}")


PROMPTS = Path(__file__).parent / "prompts"


def register_resolvers() -> None:
    """The words that our YAML files use beside omegaconf's own."""
    OmegaConf.register_new_resolver("stem", _stem, replace=True)
    own = ("beir", "python_docs", "synthetic")  # readers whose corpus brings queries with it
    OmegaConf.register_new_resolver("rest", lambda whole, *parts: whole - sum(parts), replace=True)
    OmegaConf.register_new_resolver("own_queries", lambda reader: reader if reader in own else "none", replace=True)


def _stem(path: object) -> str:
    """A file's or folder's name up to its first dot, that of a hidden one too; `.` is named after the folder it is."""
    named = Path(str(path or "/"))
    return (named.resolve() if named.name in ("", "..") else named).name.lstrip(".").split(".")[0]


def quoted(overrides: Sequence[str]) -> list[str]:
    """The overrides, with values in quotes that Hydra's grammar cannot read: paths with `=`, `,`, `~`, `(` or `é` in them."""
    return [_quoted(override) for override in overrides]


def _quoted(override: str) -> str:
    key, equals, given = override.partition("=")
    try:
        if not OverridesParser.create().parse_override(override).is_sweep_override():
            return override
    except HydraException:
        pass
    known = re.fullmatch(r"[+~]{0,2}[A-Za-z_][\w.]*", key) and equals
    return f"{key}={QuotedString(given, Quote.double).with_quotes()}" if known else override


def compose(overrides: Sequence[str] = ()) -> schema.Settings:
    """The settings that a job would get from these command-line overrides."""
    outer = GlobalHydra.instance().hydra  # a job composes variants while Hydra runs the job itself
    GlobalHydra.instance().clear()
    try:
        with initialize_config_module("conf", version_base="1.3"):
            return load(_composed(list(overrides)), overrides)
    finally:
        GlobalHydra.instance().hydra = outer  # another instance: Hydra put a copy in its place


def _composed(overrides: list[str]) -> DictConfig:
    """Hydra's composition. A key that Hydra does not know is added, so that `load` says which keys there are."""
    try:
        return hydra_compose("config", overrides=overrides)
    except ConfigCompositionException as error:
        unknown = re.match("Could not override '(.+?)'", str(error))
        added = [f"+{o}" if unknown and o.partition("=")[0] == unknown[1] else o for o in overrides]
        if added == overrides:
            raise
        return _composed(added)


def load(cfg: DictConfig, overrides: Sequence[str] = ()) -> schema.Settings:
    """Resolve and check a configuration composed of these overrides. Raises BadConfig."""
    register_resolvers()
    for key in _missing(OmegaConf.to_container(cfg, resolve=False), ""):
        raise BadConfig(key, "???", "a value", f"Give one on the command line: {key}=...")
    tree = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    assert isinstance(tree, dict)
    tree.pop("experiment", None)
    tree["overrides"] = list(overrides)
    settings: schema.Settings = _dataclass(schema.Settings, tree, "")
    _check_across(settings)
    return settings


def _missing(tree: Any, key: str) -> Iterator[str]:
    """The keys that a file leaves to the user. Nothing is resolved yet: other values may be made of theirs."""
    for name, given in tree.items():
        if isinstance(given, dict):
            yield from _missing(given, _join(key, name))
        elif given == "???":
            yield _join(key, name)


def _dataclass(cls: type, tree: Any, key: str) -> Any:
    if not isinstance(tree, dict):
        raise BadConfig(key, tree, "a node with keys", f"See conf/{key.split('.')[0]}/.")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    types_of = typing.get_type_hints(cls)
    for name in tree:
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, 1)
            hint = f"Did you mean {_join(key, near[0])}?" if near else "Remove it."
            raise BadConfig(_join(key, str(name)), tree[name], f"one of the keys {', '.join(fields)}", hint)
    for name in fields:
        if name not in tree:
            raise BadConfig(
                _join(key, name),
                None,
                "a value",
                f"Give {_join(key, name)}=... or choose a file of conf/{(key or name).split('.')[0]}/.",
            )
    return cls(**{name: _value(types_of[name], tree[name], _join(key, name), fields[name].metadata) for name in fields})


def _value(kind: Any, given: Any, key: str, limits: Any) -> Any:
    if limits.get("prompt"):
        return _prompt(given, key, limits["prompt"])
    if isinstance(kind, types.UnionType):
        return _dataclass(_choose(kind, given, key), given, key)
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast(type, kind), given, key)
    if typing.get_origin(kind) is list:
        if not isinstance(given, list):
            raise BadConfig(key, given, "a list", f"Write {key}=[a,b].")
        return [_value(typing.get_args(kind)[0], item, f"{key}[{i}]", {}) for i, item in enumerate(given)]
    if typing.get_origin(kind) is dict:
        if not isinstance(given, dict):
            raise BadConfig(key, given, "a mapping", f"Write it in a file of conf/{key.split('.')[0]}/.")
        return {str(name): _value(typing.get_args(kind)[1], item, _join(key, str(name)), {}) for name, item in given.items()}
    if kind is float and type(given) is int:
        given = float(given)
    if kind is str and type(given) in (int, float) and type(given) is not bool:
        given = str(given)  # YAML reads corpus.id=1 as a number
    if type(given) is not kind:
        remedy = f"In quotes, anything is one: {key}='\"...\"'." if kind is str else "Mend the value."
        raise BadConfig(key, given, f"a value of type {kind.__name__}", remedy)
    _check_limits(given, key, limits)
    return given


def _prompt(name: Any, key: str, form: str) -> dict[str, str]:
    """The parts of a template: they enter the identity of what is made with it, wherever the file lies."""
    name = str(name)
    path = Path(name) if Path(name).is_absolute() else PROMPTS / f"{name}.txt"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROMPTS.glob("*.txt")))
        raise BadConfig(key, name, f"a file of conf/prompts ({known}) or an absolute path", "Name one that is there.")
    try:
        return templates.parse(path.read_text(encoding="utf-8"), form)
    except ValueError as error:
        raise BadConfig(key, name, f"a template that can be used; {path}: {error}", "Mend the file.") from None


def _choose(union: types.UnionType, given: Any, key: str) -> type:
    name, known = schema.chooser(union)
    cls = schema.choose(union, given) if isinstance(given, dict) else None
    if cls is None:
        found = given.get(name) if isinstance(given, dict) else given
        raise BadConfig(
            f"{key}.{name}", found, f"one of {', '.join(known)}", f"Choose a file of conf/{key}/, for example {key}={known[0]}."
        )
    return cls


def _check_limits(given: Any, key: str, limits: Any) -> None:
    low, high, choices = limits.get("minimum"), limits.get("maximum"), limits.get("choices")
    if choices and given not in choices:
        raise BadConfig(key, given, f"one of {', '.join(map(repr, choices))}", "Choose one of them.")
    if low is not None and not low <= given <= (sys.float_info.max if high is None else high):  # nan and inf are in no range
        span = f"a value from {low}" + ("" if high is None else f" to {high}")
        raise BadConfig(key, given, span, "Mend the value.")


def _check_across(settings: schema.Settings) -> None:
    """Rules that join two keys."""
    loop = settings.loop
    w, h = getattr(loop, "w", 1), getattr(loop, "h", 0)
    if h >= w:
        raise BadConfig("loop.h", h, f"less than loop.w={w}", "A window that keeps all its documents never takes a new one.")
    if isinstance(loop, schema.GarenLoop) and sum(vars(loop.sources).values()) != w - h:
        raise BadConfig(
            "loop.sources", vars(loop.sources), f"numbers that add up to loop.w - loop.h = {w - h}", "Mend one of them."
        )
    if isinstance(settings.embeddings, schema.SyntheticEmbeddings) and not isinstance(settings.corpus, schema.Synthetic):
        raise BadConfig(
            "embeddings", "synthetic", "corpus=synthetic, whose topics they follow", "Choose it, or a model of conf/embeddings/."
        )
    if settings.queries.reader == "synthetic" and not isinstance(settings.corpus, schema.Synthetic):
        raise BadConfig("queries.reader", "synthetic", "corpus=synthetic, which they ask about", "Choose other queries.")
    summaries = settings.summaries if isinstance(settings.summaries, schema.ExtractiveSummaries) else settings.summaries.stand_in
    if summaries.min_sentences > summaries.max_sentences:
        raise BadConfig(
            "summaries.min_sentences",
            summaries.min_sentences,
            f"at most summaries.max_sentences={summaries.max_sentences}",
            "Mend one of them.",
        )
    if not Path(settings.artifacts.root).is_absolute():
        raise BadConfig(
            "artifacts.root", settings.artifacts.root, "an absolute path", "Set it, or the environment variable GAREN_HOME."
        )
    if "/" in settings.corpus.name or settings.corpus.name in ("", ".", ".."):
        raise BadConfig(
            "corpus.name", settings.corpus.name, "a folder name", "Give corpus.name=... without slashes, or another path."
        )


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
