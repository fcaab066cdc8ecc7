"""The format of a prompt template (`conf/prompts/*.txt`), and what each form of prompt must have.

    A note for the reader, which is neither sent nor part of an identity.
    --- system
    You answer with one word.
    --- user
    Query: {query}

A line `--- <part>` begins a part; white space around a part is dropped. A field is a lower-case name in braces, and every other
brace is an ordinary character, so that JSON stands in a template as it is. A file with the part `instruct` alone holds the
sentence for which the Qwen3-Reranker interface has a place; the rest of that interface is the model's and not ours.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FIELD = re.compile(r"\{([a-z_]+)\}")
PARTS = ("system", "user", "instruct")
INSTRUCT = {"instruct"}
_HEADING = re.compile(r"^---[ \t]*(\S*)[ \t]*$", re.MULTILINE)


class Form(NamedTuple):
    """The fields that a template must have, those that it may have, and whether it may be a mere `instruct`."""

    needed: frozenset[str]
    optional: frozenset[str]
    instruct: bool


FORMS = {
    "listwise": Form(frozenset({"query", "documents"}), frozenset({"n", "least"}), False),
    "yes_no": Form(frozenset({"query", "document"}), frozenset(), True),
    "summary": Form(frozenset({"documents"}), frozenset({"n"}), False),
}


def parse(text: str, form: str) -> dict[str, str]:
    """Part -> its text, from a template file's text. form: a key of FORMS. Raises ValueError saying what is wrong."""
    _, *pieces = _HEADING.split(text.replace("\r\n", "\n"))
    names, bodies = pieces[::2], [body.strip() for body in pieces[1::2]]
    for name in names:
        if name not in PARTS or names.count(name) > 1:
            raise ValueError(f"the line '--- {name}': expected one of {', '.join(PARTS)}, each once")
    if set(names) not in ({"user"}, {"system", "user"}, INSTRUCT if FORMS[form].instruct else {"user"}):
        raise ValueError(f"the parts {names}: a {form} template has a user part and may have a system part{_or_instruct(form)}")
    if not all(bodies):
        raise ValueError(f"the part '{names[bodies.index('')]}' is empty: write its text below its line")
    _check_fields(set(FIELD.findall("\n".join(bodies))), form, names)
    return dict(zip(names, bodies, strict=True))


def _check_fields(found: set[str], form: str, names: list[str]) -> None:
    needed, optional, _ = FORMS[form]
    if set(names) == INSTRUCT:
        needed = optional = frozenset()
    if missing := sorted(needed - found):
        raise ValueError(f"the field {{{missing[0]}}} is missing: a {form} template shows the model {', '.join(sorted(needed))}")
    if unknown := sorted(found - needed - optional):
        known = ", ".join(sorted(needed | optional)) or "no field"
        raise ValueError(f"the field {{{unknown[0]}}} is not known: a {form} template may have {known}")


def _or_instruct(form: str) -> str:
    return ", or is one instruct part" if FORMS[form].instruct else ""
