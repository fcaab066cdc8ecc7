"""Answers of models, well and badly written: always a whole ranking, and never a ranking or a description by accident."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.answers import (
    MISSING,
    OK,
    REPAIRED,
    REPEATED,
    UNUSABLE,
    Description,
    parse_description,
    parse_ranking,
    steps,
)

# answer, the ids that it names, outcome; for a window of 4 of which all were asked for
RANKINGS = [
    ("[2] > [1] > [4] > [3]", "2143", OK),
    ("[2]>[1]>\n[4]  >  [3]\n", "2143", OK),
    ("<answer> [2] > [1] > [4] > [3] </answer>", "2143", OK),
    ("<think>[4] > [3]</think> <answer>[2] > [1] > [4] > [3]</answer>", "2143", OK),
    ("so [4] > [3]</think>[2] > [1] > [4] > [3]", "2143", OK),  # the think block was opened in the prompt
    ("<think>a</think>[4] > [3]<think>b</think>[2] > [1] > [4] > [3]", "2143", OK),
    ("[Reasoning Trace]\nStep 1: [3] > [4]?\n\n[Document Ranking]\n[2] > [1] > [4] > [3]", "2143", OK),
    ("**Document Ranking:**\n[2] > [1] > [4] > [3]", "2143", OK),
    ("The form is <answer> [] > [] </answer>. <answer>[2] > [1] > [4] > [3]</answer>", "2143", OK),
    ("<answer>[2] > [1] > [4] > [3]</answer> because [4] is long", "2143", OK),
    ("<answer>[1] > [2] > [3] > [4]</answer> No: <answer>[2] > [1] > [4] > [3]</answer>", "2143", OK),
    # all ids, but not in the form that was asked for
    ("[2], [1], [4], [3]", "2143", REPAIRED),
    ("[2] > [1] > [4] > [3].", "2143", REPAIRED),
    ("[2] > [1] > ... > [4] > [3]", "2143", REPAIRED),
    ("2 > 1 > 4 > 3", "2143", REPAIRED),
    ("Ranking: 2, 1, 4, 3", "2143", REPAIRED),
    ("2\n1\n4\n3\n", "2143", REPAIRED),
    ("[2, 1, 4, 3]", "2143", REPAIRED),
    ("```json\n[2, 1, 4, 3]\n```", "2143", REPAIRED),
    ('{"ranking": [2, 1, 4, 3]}', "2143", REPAIRED),
    ('["[2]", "[1]", "[4]", "[3]"]', "2143", REPAIRED),
    ("1. [2]\n2. [1]\n3. [4]\n4. [3]", "2143", REPAIRED),
    ("Here you are:\n\n1. **[2]**\n2. **[1]**\n3. **[4]**\n4. **[3]**", "2143", REPAIRED),
    ("[2] says so\n[1] hints at it\n[4] is on the subject\n[3] is not", "2143", REPAIRED),
    ("The order is [2], [1], [4] and [3], I think.", "2143", REPAIRED),
    ("<answer>Neither [3] nor [4]. [2] > [1] > [4] > [3]</answer>", "2143", REPAIRED),
    ("Perhaps [1] > [2] > [3] > [4]. No, rather [2] > [1] > [4] > [3]", "2143", REPAIRED),
    ("It is [4] > [3], so all in all [2] > [1] > [4] > [3], as [1] > [3]", "2143", REPAIRED),
    ("I would say [2] > [1] > [4] > [3], since [2] and [1] are close", "2143", REPAIRED),
    ("[٢] > [١] > [٤] > [٣]", "2143", REPAIRED),
    ("［２］＞［１］＞［４］＞［３］", "2143", REPAIRED),
    ("排序：【2】>【1】>【4】>【3】", "2143", REPAIRED),
    ("[0] > [2] > [1] > [4] > [3]", "2143", REPAIRED),
    ("[2] > [1] > [99] > [4] > [3]", "2143", REPAIRED),
    ("[2] > [1] > [4] > [3] > [" + "9" * 5000 + "]", "2143", REPAIRED),
    ("<answer> 2 > 1 > 9 > 4 > 3 </answer>", "2143", REPAIRED),
    ("<answer> first [2], then [1]; [4] and [3] last </answer>", "2143", REPAIRED),
    # some ids
    ("[2] > [1]", "21", MISSING),
    ("<answer> [2] > [1", "2", MISSING),
    ("<think> hm <answer> [2] > [1] </answer>", "21", MISSING),
    ("Good: [3] > [2].", "32", MISSING),
    ("[3] > [3] > [3]", "3", MISSING),
    ("<answer>[4]</answer>", "4", MISSING),
    ("[4]", "4", MISSING),
    ("Ranking: [4], [2]", "42", MISSING),
    # an id twice
    ("[2] > [1] > [2] > [4] > [3] > [3]", "2143", REPEATED),
    # nothing that is a ranking
    ("", "", UNUSABLE),
    (" \n\t", "", UNUSABLE),
    ("<answer></answer>", "", UNUSABLE),
    ("<answer> [] > [] </answer>", "", UNUSABLE),
    ("<answer> none of the 4 fits </answer>", "", UNUSABLE),
    ("[Document Ranking]\n", "", UNUSABLE),
    ("Step 1: [3] > [2]\n[Document Ranking]", "", UNUSABLE),
    ("<think> so [2] > [1] > [4] > [3]", "", UNUSABLE),
    ("<think> a </think> <think> [2] > [1] > [4] > [3]", "", UNUSABLE),
    ("[2] > [1] > [4] > [3] </think>", "", UNUSABLE),
    ("Passages [1] and [2] are about cats.", "", UNUSABLE),
    ("[1] is about cats, [3] is not.", "", UNUSABLE),
    ("3", "", UNUSABLE),
    ("In 2 of 4 cases, 3 fits.", "", UNUSABLE),
    ("HTTP 429: retry in 2, 3 or 4 s", "", UNUSABLE),
    ("2024, 3, 1", "", UNUSABLE),
    ("Error code: 400 - maximum context length is 4096", "", UNUSABLE),
    ("[9] > [8]", "", UNUSABLE),
    ("[-1] > [1.5]", "", UNUSABLE),
    ("I cannot rank these.", "", UNUSABLE),
]


@pytest.mark.parametrize(("answer", "named", "outcome"), RANKINGS)
def test_rankings_by_hand(answer: str, named: str, outcome: str) -> None:
    expected = [int(c) - 1 for c in named + "".join(c for c in "1234" if c not in named)]
    assert parse_ranking(answer, 4, 4) == (expected, len(named), outcome)


def test_an_answer_that_names_as_many_as_were_asked_for_is_whole() -> None:
    assert parse_ranking("[4] > [2]", 4, 2) == ([3, 1, 0, 2], 2, OK)
    assert parse_ranking("[4] > [2]", 4, 3) == ([3, 1, 0, 2], 2, MISSING)
    assert parse_ranking("[4] > [4] > [2]", 4, 2) == ([3, 1, 0, 2], 2, REPEATED)
    assert parse_ranking("[1]", 1, 10) == ([0], 1, OK)
    assert parse_ranking("[1]", 0, 10) == ([], 0, UNUSABLE)


def test_steps() -> None:
    answer = (
        "<think>Step 9: no</think>[Reasoning Trace]\nStep 1: What copies\n  share\n**Step 2:** In Step 1: more\n"
        "- step 3. Last\nStep 4:\n"
        "\n[Document Ranking]\n[1] > [2]\nStep 5: no"
    )
    assert steps(answer) == ["What copies share", "In Step 1: more", "Last"]
    assert steps("Stepping 1: no\n[1] > [2]") == steps("") == []
    assert steps("Step 1: cut off in the mid") == ["cut off in the mid"]


# --- twenty thousand answers ------------------------------------------------------------------------------------------

PROSE = [
    "the best is",
    "Ranking:",
    "2024",
    "3.14",
    "a[0]",
    "because [2]",
    "答案是",
    "پاسخ",
    "ответ: 5",
    "see [1, 2]",
    "[citation]",
    "12 > 5",
]
MARKS = [
    "<answer>",
    "</answer>",
    "<think>",
    "</think>",
    "[Document Ranking]",
    "\n",
    "```json\n",
    "```",
    "Step 1: x\n",
    "{",
    "}",
    '"ranking":',
    "…",
]
DIGITS = ["0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９"]
FORMS = ["[{}]", "[{}]", "[{}]", "{}", "【{}】", "**[{}]**", "[ {} ]", "[{}", "({})"]
JOINS = [" > ", ">", ", ", "\n", " ", " ＞ ", " and ", "\n1. ", ""]


def some_chain(rng: random.Random, n: int) -> str:
    """Ids as they should be, or a few of them, or any numbers; written well in half of all cases."""
    ids = rng.sample(range(1, n + 1), rng.choice([n, n, rng.randint(0, n)]))
    ids += rng.choice([[], [], [rng.randint(-1, n + 5) for _ in range(4)], [10**30]])
    form, join, digits = (
        (rng.choice(FORMS), rng.choice(JOINS), rng.choice(DIGITS)) if rng.random() < 0.5 else ("[{}]", " > ", DIGITS[0])
    )
    return join.join(form.format(i) for i in ids).translate(str.maketrans(DIGITS[0], digits))


def some_answer(rng: random.Random, n: int) -> str:
    match rng.randrange(4):
        case 0:
            return some_chain(rng, n)
        case 1:
            return f"<think>{rng.choice(PROSE)}</think>\n<answer> {some_chain(rng, n)} </answer>"
        case 2:
            return f"Step 1: {rng.choice(PROSE)}\n[Document Ranking]\n{some_chain(rng, n)}"[: rng.randint(0, 120)]
    pieces = [rng.choice([rng.choice(PROSE), rng.choice(MARKS), some_chain(rng, n)]) for _ in range(rng.randrange(7))]
    return rng.choice(["", " ", "\n"]).join(pieces)


def check_whole(answer: str, n: int, least: int) -> str:
    order, named, outcome = parse_ranking(answer, n, least)
    assert sorted(order) == list(range(n)), answer
    assert order[named:] == sorted(order[named:]), "what was not named follows in window order"
    assert (outcome == UNUSABLE) == (named == 0) and (outcome == MISSING) == (0 < named < min(least, n)), answer
    return outcome


def test_every_answer_gives_a_whole_ranking() -> None:
    rng = random.Random(20)
    seen: dict[str, int] = {}
    for _ in range(20_000):
        n = rng.choice([0, 1, 2, 5, 10, 20])
        outcome = check_whole(some_answer(rng, n), n, rng.choice([1, 10, n]))
        seen[outcome] = seen.get(outcome, 0) + 1
    assert min(seen[outcome] for outcome in (OK, REPAIRED, MISSING, REPEATED, UNUSABLE)) > 500, seen


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.integers(0, 25), st.integers(0, 25))
def test_any_text_gives_a_whole_ranking(answer: str, n: int, least: int) -> None:
    check_whole(answer, n, least)
    assert isinstance(steps(answer), list)
    assert parse_description(answer).outcome in (OK, REPAIRED, UNUSABLE)


def test_a_ranking_survives_what_is_done_to_it() -> None:
    """The same order in whichever digits, joins and surroundings, and whatever is repeated or out of range."""
    rng = random.Random(21)
    for _ in range(1_000):
        n = rng.randint(2, 20)
        ids = rng.sample(range(1, n + 1), n)
        noisy = [i for k, i in enumerate(ids) for i in rng.choice([[i], [i], [i, 0], [i, n + 7], [i, ids[rng.randint(0, k)]]])]
        chain = (
            rng.choice([" > ", ">", ", ", " ＞ ", "\n> "])
            .join(f"[{i}]" for i in noisy)
            .translate(str.maketrans(DIGITS[0], rng.choice(DIGITS)))
        )
        around = rng.choice(
            ["{}", "<think>[1] > [2]</think>{}", "<answer>{}</answer>", "Step 1: [2]\n[Document Ranking]\n{}", "Order: {}"]
        )
        order, named, outcome = parse_ranking(around.format(chain), n, n)
        assert (order, named) == ([i - 1 for i in ids], n), around.format(chain)
        assert (outcome == REPEATED) == (len({*noisy}) < len(noisy) - sum(not 1 <= i <= n for i in noisy) + len({*noisy} - {*ids}))


@pytest.mark.parametrize(
    "piece",
    [
        "[1",
        "1",
        "[1] > ",
        "[1] ",
        "[ ",
        "\n",
        " ",
        "*",
        "<answer>",
        "<think>",
        "Document Ranking\n",
        "Step 1: ",
        "1 ",
        ": ",
        '{"a":',
        "[",
        '{"',
        '["',
        "[{",
    ],
)
def test_an_answer_that_loops_is_read_in_little_time(piece: str) -> None:
    answer = piece * (30_000 // len(piece))
    start = time.process_time()
    for text in (answer, answer + "x", "[1]" + answer + "x[2]", '{"concept": "a", "summary": "' + answer):
        parse_ranking(text, 20, 20)
        steps(text)
        parse_description(text)
    assert time.process_time() - start < 3, "a quadratic pattern takes far longer"


# --- descriptions -----------------------------------------------------------------------------------------------------

SUMMARY = "Deep copies of lists are made by copy.deepcopy. Assignment only binds another name."
GOOD = json.dumps({"detailed_fingerprints": [{"name": "x"}], "common_theme": "t", "concept": "Copying lists", "summary": SUMMARY})


@pytest.mark.parametrize(
    "answer", [GOOD, f"\n{GOOD}\n", f"<think>{{'concept': 1}}</think>\n{GOOD}", json.dumps(json.loads(GOOD), indent=2)]
)
def test_a_valid_object_is_taken_as_it_is(answer: str) -> None:
    assert parse_description(answer) == Description("Copying lists", SUMMARY, OK)


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{GOOD}\n```",
        f"Here is {{the}} JSON: {GOOD}",
        f"{GOOD}\n\nI hope this helps!",
        GOOD[:-1],
        GOOD[:-2],
        GOOD.replace('", "', '" "'),
        GOOD.replace('"t",', '"t", // the theme\n'),
        GOOD.replace('"', "'").replace("'t'", '"t"').replace("{'", '{"', 1),
        GOOD[:-2] + " And one more sentence that was brok",
        json.dumps({"concept": "Copying lists", "summary": SUMMARY.split(". ", 1)[0] + ".\n\n" + SUMMARY.split(". ", 1)[1]}),
        json.dumps({"concept": "Copying lists", "summary": (SUMMARY + " ") * 9}),
        json.dumps({"concept": ["Copying", "lists"], "summary": [s + "." for s in SUMMARY[:-1].split(". ")]}),
        "[" + GOOD + "]",
    ],
)
def test_a_broken_object_is_mended(answer: str) -> None:
    assert parse_description(answer) == Description("Copying lists", SUMMARY, REPAIRED)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot do that.",
        "{}",
        "null",
        "[1, 2]",
        f"<think>{GOOD}",
        json.dumps({"concept": "Copying lists"}),
        json.dumps({"concept": "Copying lists", "summary": "..."}),
        json.dumps({"concept": "...", "summary": SUMMARY}),
        json.dumps({"concept": "", "summary": SUMMARY}),
        json.dumps({"concept": 7, "summary": SUMMARY}),
        json.dumps({"concept": "Copying lists", "summary": {"text": SUMMARY}}),
        json.dumps({"concept": "Copying lists", "summary": "1234567890 " * 3}),
        json.dumps({"concept": "a label as long as a sentence is no label for anyone", "summary": SUMMARY}),
        json.dumps({"concept": "x" * 200, "summary": SUMMARY}),
        json.dumps({"concept": "Copying lists", "summary": "word " * 2000}),
        GOOD[:80],
        "[" * 100_000,
    ],
)
def test_what_is_no_description_is_unusable(answer: str) -> None:
    assert parse_description(answer) == Description("", "", UNUSABLE)


def test_lengths_beyond_what_was_asked() -> None:
    seven = "How lists are copied in Python three"
    assert parse_description(json.dumps({"concept": seven, "summary": SUMMARY})) == (seven, SUMMARY, REPAIRED)
    many = [f"Sentence number {i} says something." for i in range(30)]
    assert parse_description(json.dumps({"concept": "Many", "summary": " ".join(many)})) == ("Many", " ".join(many[:12]), REPAIRED)
    assert (
        parse_description(
            json.dumps({"concept": "蓝眼猫", "summary": "蓝眼猫是一种眼睛为蓝色的猫，多见于暹罗猫与布偶猫等品种。"})
        ).outcome
        == OK
    )


def test_half_a_character_does_not_get_through() -> None:
    found = parse_description('{"concept": "Copying \\ud83d lists", "summary": "' + SUMMARY + '"}')
    assert (found.concept.encode(), found.outcome) == (b"Copying ? lists", REPAIRED)
