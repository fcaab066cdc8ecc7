"""Answer a question of your own.

Reads: index. Writes: nothing.   echo "why does my nested list change" | python -m jobs.search corpus=python_docs
The question is the whole of standard input, or of the file named by `ask`. Cost: the models' calls of one query.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from actors.artifacts.queries import Query
from actors.artifacts.store import open_manifest
from actors.first_stage import WHY_EMPTY
from actors.index import Hit
from actors.roles import SHELLS
from conf import schema
from conf.load import BadConfig
from jobs import brought, session
from jobs.console import say
from jobs.online import service
from jobs.stages import Addresses

TOP = 10


def run(settings: schema.Settings) -> list[Hit]:
    """Print the answer: texts, ranks, the groups they belong to, and what brought them in."""
    question = read_question(settings.ask)
    index = Addresses(settings)["index"]
    if settings.plan:
        say(f"search: would answer over {index.folder}")
        return []
    open_manifest(index.folder, "index")
    query = Query("question", question, ())
    brought.check_questions(settings, index.folder, [query])
    with service(settings.cluster) as opened:
        hits, usage = opened.hits(settings, index.folder, query, TOP)
    say(f"\n{question}\n")
    if not hits:
        say(f"Nothing was found: {WHY_EMPTY[settings.first_stage.method]}.")
    for hit in hits:
        say(f"{hit.rank:>3}  {hit.doc_id}   [group {hit.group}: {hit.concept}; found through {hit.source}]")
        say(textwrap.indent(textwrap.shorten(hit.text, 300), "     "))
    calls = ", ".join(f"{role} {counters.get('calls', 0)} calls" for role, counters in usage.items() if role in SHELLS)
    say(f"\n{usage['loop']['documents']} documents observed, {usage['loop']['from_groups']} of them from groups; {calls}")
    found: list[Hit] = hits
    return found


def read_question(ask: str) -> str:
    """The question's text. Raises BadConfig when there is none."""
    if ask == "-":
        if sys.stdin and sys.stdin.isatty():
            say("Type the question, then Ctrl-D:")
        raw = sys.stdin.buffer.read() if sys.stdin else b""  # whatever the locale: as text, the C locale would let anything through
    else:
        if not Path(ask).is_file():
            raise BadConfig(
                "ask", ask, "a file that holds the question, or -", "Write the question into a file, or give it on standard input."
            )
        raw = Path(ask).read_bytes()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadConfig("ask", ask, "a question in UTF-8", f"Byte {error.start} is not: give plain text.") from None
    if not text.strip():
        raise BadConfig("ask", ask, "a question", "It is empty: give a file with text, or text on standard input.")
    return text.strip()


main = session.job(run)

if __name__ == "__main__":
    main()
