import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from actors.corpora import folder
from actors.corpora.records import BadInput, Document, Refused
from conf.schema import Folder

GUIDE = """Before.

# Guide
## Install
Run it.
```sh
# no heading
```
### Linux
Use apt.
## Use: `run()`!
~~~~
~~~
# still no heading
~~~~~
Body
## Install
Again.
## Empty
"""


def corpus(path: Path, split: str = "file") -> Folder:
    return Folder("folder", "c", str(path), split, "stop")


def written(root: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def test_one_document_per_file(tmp_path: Path) -> None:
    written(tmp_path, b_txt="b", a__z_md="\ufeff# z\r\nline", a_TXT="A", c_rst="c", _git__x_md="x", a___y_md="y")
    assert list(folder.documents(corpus(tmp_path))) == [
        Document("a/z.md", "# z\nline", "a/z.md:1"),
        Document("a.TXT", "A", "a.TXT:1"),
        Document("b.txt", "b", "b.txt:1"),
    ]
    assert folder.files(corpus(tmp_path)) == [tmp_path / "a" / "z.md", tmp_path / "a.TXT", tmp_path / "b.txt"]


def test_one_document_per_section(tmp_path: Path) -> None:
    written(tmp_path, g_md=GUIDE, n_txt="# no\n## section\n")
    fenced, tilded = "```sh\n# no heading\n```", "~~~~\n~~~\n# still no heading\n~~~~~"
    assert list(folder.documents(corpus(tmp_path, "section"))) == [
        Document("g.md", "Before.", "g.md:1"),
        Document("g.md#install", f"Guide > Install\nRun it.\n{fenced}", "g.md:4"),
        Document("g.md#linux", "Guide > Install > Linux\nUse apt.", "g.md:9"),
        Document("g.md#use-run", f"Guide > Use: `run()`!\n{tilded}\nBody", "g.md:11"),
        Document("g.md#install-2", "Guide > Install\nAgain.", "g.md:17"),
        Document("g.md#empty", "Guide > Empty", "g.md:19"),
        Document("n.txt", "# no\n## section", "n.txt:1"),
    ]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# A", "A"), ("###### A ##", "A"), ("   ## A #1", "A #1"), ("#\tA", "A"), ("# A#", "A#"), ("##", ""), ("# #", ""),
        ("#A", None), ("####### A", None), ("    # A", None), ("\\# A", None),
    ],
)  # fmt: skip
def test_what_is_a_heading(line: str, title: str | None) -> None:
    (section,) = folder.sections(f"{line}\nbody")
    assert section.titles == (() if title is None else (title,))


def test_a_skipped_level_and_a_higher_one_after_it(tmp_path: Path) -> None:
    titles = [each.titles for each in folder.sections("### A\na\n# B\nb\n### C\nc\n## D\nd")]
    assert titles == [("A",), ("B",), ("B", "C"), ("B", "D")]


def test_a_slug_that_is_taken_by_another_heading_is_passed_over(tmp_path: Path) -> None:
    written(tmp_path, g_md="# A\na\n# A-2\nb\n# A\nc\n# ???\nd\n# Über uns\ne")
    ids = [each[0] for each in folder.documents(corpus(tmp_path, "section"))]
    assert ids == ["g.md#a", "g.md#a-2", "g.md#a-3", "g.md#section", "g.md#über-uns"]


@given(st.lists(st.sampled_from(["# A", "## A", "## B", "### A", "text", "", "```", "~~~", "a-2", "# A-2"])))
def test_every_line_of_text_is_in_one_section_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = list(folder.sections(text))
    kept = [line for each in found for line in each.text.split("\n") if line]
    inside = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in kept if not line.startswith("#")] == inside
    # Each heading line is in a code block, or the last title of a section, or of the headings above one.
    titles = {title for each in found for title in each.titles} | {line.lstrip("# ") for line in kept}
    assert {line.lstrip("# ") for line in lines if line.startswith("#")} <= titles
    assert [each.line for each in found] == sorted({each.line for each in found})


def test_files_that_cannot_be_documents_are_refused(tmp_path: Path) -> None:
    written(tmp_path, a_txt=b"one\n\xff\n")
    try:
        (tmp_path / os.fsdecode(b"\xff.txt")).write_text("t")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    (tmp_path / "t\tb.txt").write_text("t")
    assert list(folder.documents(corpus(tmp_path))) == [
        Refused("a.txt:2", "not UTF-8", "\ufffd"),
        Refused("t\tb.txt:1", "TAB or line break in the id", "t"),
        Refused("\udcff.txt:1", "lone surrogate", "t"),
    ]


def test_an_empty_file_is_a_document_without_text(tmp_path: Path) -> None:
    written(tmp_path, a_md="\n")
    expected = [Document("a.md", "", "a.md:1")]
    assert list(folder.documents(corpus(tmp_path, "section"))) == list(folder.documents(corpus(tmp_path))) == expected


def test_a_file_or_an_empty_folder_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the folder holds no file ending in .txt or .md"):
        list(folder.documents(corpus(tmp_path)))
    with pytest.raises(BadInput, match="expected a folder and not a file"):
        list(folder.documents(corpus(written(tmp_path, a_txt="t") / "a.txt")))
    with pytest.raises(BadInput, match="there is no such file or folder"):
        list(folder.documents(corpus(tmp_path / "missing")))
