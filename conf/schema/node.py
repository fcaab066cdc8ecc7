"""A node of the configuration is a dataclass: how its values are declared, and what can be asked of any node."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import field
from typing import Any

PROMPT = "name of a file of conf/prompts, or the absolute path of one of your own"


def value(
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    identity: bool = True,
    prompt: str = "",
) -> Any:
    return field(metadata=locals())


def choose(union: types.UnionType, node: Mapping[str, Any]) -> type | None:
    """The dataclass of a union that the node's own key names, for example `reader: beir`; None when it names none of them."""
    return next((cls for cls in typing.get_args(union) if node.get(_chooser(cls).name) in _chooser(cls).metadata["choices"]), None)


def revive(union: types.UnionType, node: Mapping[str, Any]) -> Any:
    """A node that was written down as a mapping, as its dataclass again."""
    cls = choose(union, node)
    if cls is None:
        raise ValueError(f"{dict(node)}: no node of the configuration looks like this. Build the artifact again.")
    kinds = typing.get_type_hints(cls)
    return cls(**{name: _revived(kinds[name], given) for name, given in node.items()})


def merged(identity: Mapping[str, Any], places: Mapping[str, Any]) -> dict[str, Any]:
    """`identity` and `places` of a node as one mapping again."""
    inner = {name: merged(identity[name], given) for name, given in places.items() if isinstance(identity.get(name), Mapping)}
    return {**identity, **places, **inner}


def _revived(kind: Any, given: Any) -> Any:
    if isinstance(kind, types.UnionType):
        return revive(kind, given)
    return kind(**given) if isinstance(kind, type) and dataclasses.is_dataclass(kind) else given


def chooser(union: types.UnionType) -> tuple[str, list[str]]:
    """The key that tells a union's dataclasses apart, and the values it may have."""
    names = [choice for cls in typing.get_args(union) for choice in _chooser(cls).metadata["choices"]]
    return _chooser(typing.get_args(union)[0]).name, names


def _chooser(cls: type) -> dataclasses.Field[Any]:
    return next(f for f in dataclasses.fields(cls) if f.name in ("reader", "method", "judge", "engine"))


def identity(node: Any) -> dict[str, Any]:
    """The values of a node that say *what*, those of a node in it too: they enter the identity of the artifacts made with it."""
    own = {f.name: getattr(node, f.name) for f in dataclasses.fields(node) if f.metadata["identity"]}
    return {name: identity(value) if dataclasses.is_dataclass(value) else value for name, value in own.items()}


def places(node: Any) -> dict[str, Any]:
    """The values of a node that say *where*; those of a node in it stay in theirs."""
    found = {}
    for f in dataclasses.fields(node):
        given = getattr(node, f.name)
        if not f.metadata["identity"]:
            found[f.name] = given
        elif dataclasses.is_dataclass(given) and (inner := places(given)):
            found[f.name] = inner
    return found
