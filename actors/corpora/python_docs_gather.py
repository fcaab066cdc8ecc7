"""Reads the docstrings of the running Python's standard library; a child process' script: importing a module runs it.

Argument: a JSON object with `seconds` (for one module; longer ends this process), `skip` (modules that did so before),
`modules` (where to begin; empty: the whole library) and `path` (folders to import from before all others).
Output: JSON lines {"reading": module} while modules are read, then {"document": [id, text]} and
{"refused": [module, reason]}, both sorted, then {"done": true}. What a module prints does not get in between.

Not read, although they belong to the library: private modules and names, tests, demonstrations, programs that act when
they are imported, the tables of single encodings, modules for another platform, implementations of a module with
another name (posixpath is read as os.path), and modules that are removed by 3.13: nobody should be pointed to them.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import NamedTuple, TextIO

PROGRAMS = {"antigravity", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "this", "turtledemo"}
REMOVED = {
    "aifc",
    "asynchat",
    "asyncore",
    "audioop",
    "cgi",
    "cgitb",
    "chunk",
    "crypt",
    "distutils",
    "imghdr",
    "imp",
    "mailcap",
    "msilib",
    "nis",
    "nntplib",
    "ossaudiodev",
    "pipes",
    "smtpd",
    "sndhdr",
    "spwd",
    "sunau",
    "telnetlib",
    "tkinter.tix",
    "uu",
    "xdrlib",
}
IMPLEMENTATIONS = {
    "genericpath",
    "nt",
    "ntpath",
    "nturl2path",
    "opcode",
    "posix",
    "posixpath",
    "pyexpat",
    "sre_compile",
    "sre_constants",
    "sre_parse",
}
FOREIGN = {
    "asyncio.unix_events",
    "asyncio.windows_events",
    "asyncio.windows_utils",
    "ctypes.macholib",
    "multiprocessing.popen_spawn_win32",
}
WITHOUT_SUBMODULES = {"encodings"}
SHOWN_ALIASES = 10
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
PLACES = {sys.executable: "sys.executable", sys.prefix: "sys.prefix"}  # defaults that hold where this Python was installed


class Entry(NamedTuple):
    """One name under which a docstring is found. The entry with the smallest `rank` gives the document its id."""

    rank: tuple[bool, bool, int, bool, int, int, str]
    name: str
    docstring: str
    signature: str


def main() -> None:
    job = json.loads(sys.argv[1])
    records = private_stdout()
    sys.path[:0] = job["path"]
    names = job["modules"] or library()
    entries: list[Entry] = []
    refused: dict[str, str] = {}
    waiting = sorted(set(names) - set(job["skip"]), reverse=True)
    while waiting:
        name = waiting.pop()
        write(records, {"reading": name})
        faulthandler.dump_traceback_later(job["seconds"], exit=True)
        try:
            module = importlib.import_module(name)
            entries += list(module_entries(name, module))
            waiting += sorted((sub for sub in submodules(name, module) if sub not in job["skip"]), reverse=True)
        except BaseException as error:  # a module may also raise SystemExit or KeyboardInterrupt
            refused[name] = ADDRESS.sub("", f"{type(error).__name__}: {error}")
        faulthandler.cancel_dump_traceback_later()
    for document in sorted(documents(entries)):
        write(records, {"document": document})
    for problem in sorted(refused.items()):
        write(records, {"refused": problem})
    write(records, {"done": True})
    os._exit(0)  # threads and exit handlers of imported modules must not hold the process


def private_stdout() -> TextIO:
    """The process' stdout under another descriptor; descriptor 1, where modules print, leads nowhere."""
    records = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
    return records


def write(records: TextIO, record: dict[str, object]) -> None:
    records.write(json.dumps(record) + "\n")
    if "document" not in record:
        records.flush()


def library() -> list[str]:
    """The top-level modules to read that this Python has, and os.path. (Python also names those of other platforms.)"""
    wanted = [name for name in sys.stdlib_module_names if is_wanted(name)]
    return ["os.path"] + [name for name in wanted if name in sys.builtin_module_names or importlib.util.find_spec(name)]


def is_wanted(module: str) -> bool:
    parts = module.split(".")
    return not (any(part.startswith("_") or part in PROGRAMS for part in parts) or module in REMOVED | IMPLEMENTATIONS | FOREIGN)


def submodules(name: str, module: ModuleType) -> list[str]:
    if name in WITHOUT_SUBMODULES:
        return []
    found = (f"{name}.{info.name}" for info in pkgutil.iter_modules(getattr(module, "__path__", [])))
    return [sub for sub in found if is_wanted(sub)]


def module_entries(module_name: str, module: ModuleType) -> Iterator[Entry]:
    if module.__doc__:
        yield entry(module_name, module.__doc__, "", away=False, renamed=False, lineage=0)
    is_listed = hasattr(module, "__all__")
    names = module.__all__ if is_listed else vars(module)
    for name in sorted({*names, *exported_by_submodules(module_name, module)}):
        value = getattr(module, name, None)  # not from vars: some packages import what they export when it is asked for
        away = is_from_elsewhere(value, module_name)
        if not (name.startswith("_") or isinstance(value, ModuleType) or (away and not is_listed)):
            yield from object_entries(f"{module_name}.{name}", value, away)


def exported_by_submodules(module_name: str, module: ModuleType) -> Iterator[str]:
    """Public names that a package took over from its submodules, but does not list (asyncio.TaskGroup in 3.11)."""
    for name, value in vars(module).items():
        home = home_of(value)
        if home.startswith(module_name + ".") and name in getattr(sys.modules.get(home), "__all__", ()):
            yield name


def is_from_elsewhere(value: object, module: str) -> bool:
    """Whether another module that is read defines the value. A package is also home to what its submodules define."""
    home = home_of(value)
    if home in ("", module) or home.startswith(module + ".") or module == "builtins":
        return False
    name = getattr(value, "__name__", None)  # types.GeneratorType says that it is builtins.generator, which does not exist
    return name is None or getattr(sys.modules.get(home), name, None) is value


def home_of(value: object) -> str:
    """The module that says it defines the value; empty if none does or that module is not read."""
    home = getattr(value, "__module__", None)
    return home if isinstance(home, str) and is_wanted(home) else ""


def object_entries(name: str, value: object, away: bool, renamed: bool = False, owner: type | None = None) -> Iterator[Entry]:
    """Entries of an object and, if it is a class, of its members, unless the class is only renamed (typing.Text is str)."""
    renamed = renamed or getattr(value, "__name__", None) not in (None, name.rpartition(".")[2])
    docstring = own_docstring(value)
    if docstring not in ("", name.rpartition(".")[2]):
        yield entry(name, docstring, signature(value), away, renamed, len(owner.__mro__) if owner else 0)
    if isinstance(value, type) and not (away and renamed):
        for member_name, member in sorted(members(value).items()):
            if not member_name.startswith("_") and not is_borrowed_class(value, member):
                function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
                yield from object_entries(f"{name}.{member_name}", function, away, renamed, value)


def members(owner: type) -> dict[str, object]:
    """What a class defines, and what it has from bases that are private and so have no documents of their own."""
    found: dict[str, object] = {}
    for base in reversed(owner.__mro__):
        if base is owner or not is_wanted(f"{base.__module__}.{base.__qualname__}"):
            found |= vars(base)
    return found


def is_borrowed_class(owner: type, member: object) -> bool:
    """Whether a class attribute is a class from elsewhere (a default, a factory), not one nested in its owner."""
    return isinstance(member, type) and not member.__qualname__.startswith(owner.__qualname__ + ".")


def own_docstring(value: object) -> str:
    """The docstring of this very object, for a class with its constructor's; empty where inherited or its type's."""
    if isinstance(value, type):
        constructor = vars(value).get("__init__")
        parts = [value.__doc__, constructor.__doc__ if isinstance(constructor, FunctionType) else None]
    else:
        docstring = getattr(value, "__doc__", None)
        parts = [docstring if docstring != type(value).__doc__ else None]
    return "\n\n".join(inspect.cleandoc(part) for part in parts if isinstance(part, str) and part.strip())


def signature(value: object) -> str:
    if not callable(value):
        return ""
    try:
        return str(inspect.signature(value))
    except Exception:  # many functions written in C have none, and some objects only look callable
        return ""


def entry(name: str, docstring: str, signature: str, away: bool, renamed: bool, lineage: int) -> Entry:
    """Preferred: where it is defined, its own name, few dots, a builtin, of the most general class, short."""
    rank = (away, renamed, name.count("."), not name.startswith("builtins."), lineage, len(name), name)
    return Entry(rank, name, ADDRESS.sub("", inspect.cleandoc(docstring)).strip(), _without_places(ADDRESS.sub("", signature)))


def _without_places(signature: str) -> str:
    for place, name in PLACES.items():
        signature = signature.replace(place, name)
    return signature


def documents(entries: list[Entry]) -> Iterator[tuple[str, str]]:
    """Id and text of each distinct docstring, with the other names under which the same docstring is found."""
    same: dict[str, list[Entry]] = {}
    for each in sorted(entries):
        same.setdefault(each.docstring, []).append(each)
    for docstring, (kept, *others) in same.items():
        text = f"{kept.name}{kept.signature}\n{docstring}"
        aliases = [other.name for other in others]
        if aliases:
            more = f" and {len(aliases) - SHOWN_ALIASES} more" if len(aliases) > SHOWN_ALIASES else ""
            text += f"\nAlso: {', '.join(aliases[:SHOWN_ALIASES])}{more}"
        yield kept.name, text


if __name__ == "__main__":
    main()
