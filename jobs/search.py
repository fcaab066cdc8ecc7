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
from actors.index import Hit
from conf import schema
from conf.load import BadConfig
from jobs import session
from jobs.console import say
from jobs.online import searchers
from jobs.stages import Addresses

TOP = 10


def run(settings: schema.Settings) -> list[Hit]:
    """Print the answer: texts, ranks, the groups they belong to, and what brought them in."""
    import ray

    question = read_question(settings.ask)
    index = Addresses(settings)["index"]
    if settings.plan:
        say(f"search: would answer over {index.folder}")
        return []
    open_manifest(index.folder, "index")
    with searchers(settings, index.folder, 1) as (searcher,):
        hits, usage = ray.get(searcher.hits.remote(Query("question", question, ()), TOP))
    say(f"\n{question}\n")
    for hit in hits:
        say(f"{hit.rank:>3}  {hit.doc_id}   [group {hit.group}: {hit.concept}; found through {hit.source}]")
        say(textwrap.indent(textwrap.shorten(hit.text, 300), "     "))
    calls = ", ".join(f"{role} {counters.get('calls', 0)} calls" for role, counters in usage.items() if role != "loop")
    if not hits:
        say("No document shares a word with the question: the first stage (BM25) found none, so there is nothing to start from.")
    say(f"\n{usage['loop']['documents']} documents observed, {usage['loop']['from_groups']} of them from groups; {calls}")
    found: list[Hit] = hits
    return found


def read_question(ask: str) -> str:
    """The question's text. Raises BadConfig when there is none."""
    if ask == "-":
        if sys.stdin.isatty():
            say("Type the question, then Ctrl-D:")
        text = sys.stdin.read()
    else:
        if not Path(ask).is_file():
            raise BadConfig(
                "ask", ask, "a file that holds the question, or -", "Write the question into a file, or give it on standard input."
            )
        text = Path(ask).read_text(encoding="utf-8")
    if not text.strip():
        raise BadConfig("ask", ask, "a question", "It is empty: give a file with text, or text on standard input.")
    return text.strip()


main = session.job(run)

if __name__ == "__main__":
    main()
