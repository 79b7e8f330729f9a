from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorkit.verify.extract import ANCHORS, extract_answer, strip_math

BOXES = [
    (r"so \boxed{42}", "42"),
    (r"$\boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
    (r"\boxed{\sqrt{\frac{a}{b^{2}}}}.", r"\sqrt{\frac{a}{b^{2}}}"),
    (r"\boxed{1} or rather \boxed{2}", "2"),
    (r"\fbox{7}", "7"),
    (r"\boxed{3} then \fbox{4}", "4"),
    (r"\boxed {5}", "5"),
    ("\\boxed{\n  6\n}", "6"),
    (r"\boxed{\{1,2\}}", r"\{1,2\}"),
    (r"\boxed{(-\infty, 3\}}", r"(-\infty, 3\}"),
    (r"\boxed{\left\{ x : x > 0 \right.}", r"\left\{ x : x > 0 \right."),
    (r"\boxed{a \\ b}", r"a \\ b"),
    (r"\boxed{a \\{b}}", r"a \\{b}"),
    (r"$\\boxed{\\frac{1}{2}}$", r"\\frac{1}{2}"),
    (r"\boxed{\boxed{8}}", "8"),
    (r"\boxed{9 + \boxed{}}", r"9 + \boxed{}"),
    (r"\boxed{5} and then \boxed{6 + ", "5"),
    (r"\boxed{5} and then \boxed 6", "5"),
    (r"\boxed{5} and then \boxed{}", "5"),
    (r"\boxed{5} and then \boxed{ \, $ $ }", "5"),
    (r"} } \boxed{5} }", "5"),
    (r"{ \boxed{5}", "5"),
    (r"The answer is 3. \boxed{4}", "4"),
    (r"\boxed{4}. The answer is 3.", "4"),
]

ANNOUNCED = [
    ("The answer is 12.", "12"),
    ("the ANSWER is 12", "12"),
    ("The answer is 3.14.", "3.14"),
    ("The answer is .5.", ".5"),
    ("The answer is 3.14. I hope it is correct.", "3.14"),
    ("The answer is: 7\nThat was easy.", "7"),
    ("Final answer: 7", "7"),
    ("Final Answer: The final answer is $\\frac{4}{9}$. I hope it is correct.", r"\frac{4}{9}"),
    ("**Final Answer:** 73", "73"),
    ("**Final Answer**: 73", "73"),
    ("**Answer: 73**", "73"),
    ("Answer: **73**.", "73"),
    ("Answer: **73.**", "73"),
    ("Answer: `73`", "73"),
    (r"Answer: \(x+1\)", "x+1"),
    (r"Answer: \(x+1\).", "x+1"),
    ("The final answer is\n\\[\nx+1\n\\]\nDone.", "x+1"),
    ("The final answer is:\n\n$$\nx\n$$", "x"),
    ("The final answer is:\n\n17", "17"),
    ("The answer is $5. She has $6 left.", "5"),
    ("The answer is $1,234.00", "1,234.00"),
    (r"The answer is \$20.", "20"),
    ("The answer is 1, 2, ..., n. Good.", "1, 2, ..., n"),
    ("The answer is 5!", "5!"),
    ("My answer is 4. No, the answer is 5.", "5"),
    ("The answer is 4. The answer is", "4"),
    ("The answer is 4. Answer: **", "4"),
    ("The answer is 4.\nThe final answer is:\n```json\n{}\n```", "4"),
    (r"The answer is \boxed{}. The answer is 12.", "12"),
    (r"The answer is 12. So \boxed{}", "12"),
    (r"The answer is 12 \boxed{}", "12"),
    (r"The answer is 12. So \boxed{13", "12"),
    ("answer:5", "5"),
    ('{"reasoning": "3 + 4", "answer": "7"}', "7"),
    ('{"answer": 7.5}', "7.5"),
    ('{"Answer" : "\\\\frac{1}{2}"}', r"\frac{1}{2}"),
    ('{"reasoning": "The answer is 5.", "answer": "6"}', "6"),
    ('{"answer": "The answer is 6."}', "6"),
    ('{"answer": ""} The answer is 5', "5"),
    ('{"answer": "1\\ud8002"}', "1?2"),
    ('The answer is 5. {"answer": ""}', "5"),
    ("<answer> 8 </answer>", "8"),
    ("<answer>8</answer> or <answer>9</answer>", "9"),
    ("<answer>8</answer> No. The answer is 9", "9"),
    ("<answer>8</answer> <answer>9", "8"),
    ("so 5 + 4 = 9\nA: 9", "9"),
    ("A: 9", "9"),
]

MARKED = [
    ("5 + 4 = <<5+4=9>>9\n#### 9", "9"),
    ("#### $14.00\n\n", "14.00"),
    ("#### -3", "-3"),
    ("#### 1,234", "1,234"),
    ("#### 10 apples", "10 apples"),
    ("#### 1\n#### 2", "2"),
    ("#### 9\nThe answer is 8", "9"),
    (r"#### 9 and \boxed{8}", "8"),
    ("The answer is 8\n#### Check", "8"),
    ("The answer is 8\n##### 9", "8"),
    ("The answer is 8 #### 9", "8 #### 9"),
]

NOTHING = [
    "",
    "#### Step one",
    "### 9",
    "PA: 9",
    '{"answers": "7"}',
    "<answer></answer>",
    "<answer>9",
    "I add 3 and 4 and get 7.",
    r"\boxed{}",
    r"\boxed{ }",
    r"\boxed{\boxed{}}",
    r"\boxed{$$} \boxed{\,}",
    r"\boxed 5",
    r"\boxed{5",
    r"boxed{5}",
    r"\boxed{5\}",
    r"\unboxed{5}",
    r"The answer is \boxed{12",
    r"The answer is \boxed{}",
    "The answer is",
    "The answer is .",
    "The answers: 5",
    "myanswer: 5",
    "The answer isolates x = 5",
]

THINKING = [
    (r"<think>\boxed{1}</think>\boxed{2}", "2"),
    (r"<think>\boxed{1}</think>It follows.", None),
    (r"<think>\boxed{1}", None),
    (r"<think>The answer is 1.", None),
    (r"\boxed{1}</think>The answer is 2.", "2"),
    (r"\boxed{1}</think>", None),
    (r"\boxed{1}<think>or \boxed{2}", "1"),
    (r"<think>a</think>\boxed{1}<think>\boxed{2}", "1"),
    (r"<think>a</think>\boxed{1}<think>\boxed{2}</think>\boxed{3}", "3"),
    (r"<think>\boxed{1}<think></think>x", None),
]


@pytest.mark.parametrize(("response", "answer"), BOXES)
def test_the_last_full_box_that_closes_is_the_answer(response: str, answer: str) -> None:
    assert extract_answer(response) == answer


@pytest.mark.parametrize(("response", "answer"), ANNOUNCED)
def test_without_a_box_the_last_announced_answer_counts(response: str, answer: str) -> None:
    assert extract_answer(response) == answer


@pytest.mark.parametrize(("response", "answer"), MARKED)
def test_four_marks_and_a_number_are_an_answer_before_any_phrase(
    response: str, answer: str
) -> None:
    assert extract_answer(response) == answer


@pytest.mark.parametrize(
    ("whole", "cut"), [("#### 12\n", "#### 12"), ('"answer": "5', '"answer": "5')]
)
def test_an_answer_that_may_have_been_cut_is_none(whole: str, cut: str) -> None:
    assert extract_answer(cut, cut_off=True) is None
    assert extract_answer(whole) == ("12" if "#" in whole else None)


@pytest.mark.parametrize("response", NOTHING)
def test_a_response_that_names_no_answer_has_none(response: str) -> None:
    assert extract_answer(response) is None


@pytest.mark.parametrize(("response", "answer"), THINKING)
def test_an_answer_inside_thinking_is_no_answer(response: str, answer: str | None) -> None:
    assert extract_answer(response) == answer


@pytest.mark.parametrize("anchor", ANCHORS)
def test_every_anchor_announces_an_answer_in_any_case(anchor: str) -> None:
    for spelled in (anchor, anchor.upper(), anchor.title(), anchor.replace(" ", "  ")):
        assert extract_answer(f"Well, {spelled} 31.") == "31"


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("The answer is 1", None),
        ("The answer is 12.", None),
        ("The answer is 12.\n", "12"),
        ("The answer is 12. So", "12"),
        ("The answer is 4. No, the answer is 1", "4"),
        (r"The answer is \boxed{12}", "12"),
        (r"\boxed{4}, or rather \boxed{1", "4"),
    ],
)
def test_an_announced_answer_that_may_lack_digits_is_passed_over(
    response: str, answer: str | None
) -> None:
    assert extract_answer(response, cut_off=True) == answer


plain = st.text(st.characters(exclude_characters="\\{}", exclude_categories=["Cs"]), max_size=8)
balanced = st.recursive(
    plain | st.sampled_from([r"\{", r"\}", r"\frac", r"\\", r"\$"]),
    lambda inner: st.lists(inner, max_size=3).map("".join) | inner.map(lambda t: "{" + t + "}"),
    max_leaves=8,
)


@given(before=balanced, content=balanced, after=balanced)
def test_whatever_balanced_text_is_boxed_comes_back(before: str, content: str, after: str) -> None:
    response = rf"{before} \boxed{{v{content}}} {after}"
    if "think>" not in response:
        assert extract_answer(response) == ("v" + content).strip()


@given(st.text() | st.lists(st.sampled_from([*r"{}\$*.", "\\boxed{", "<think>", "answer:"])))
def test_no_text_at_all_upsets_extraction(pieces: str | list[str]) -> None:
    found = extract_answer("".join(pieces))
    assert found is None or found.strip() == found != ""


HOSTILE = {
    "open braces in a box": r"\boxed{" + "{" * 10**6,
    "closed braces": r"\boxed{1}" + "}" * 10**6,
    "balanced braces": r"\boxed{" + "{" * 500_000 + "}" * 500_000 + "}",
    "boxes never closed": r"\boxed{" * 140_000,
    "boxes nested": r"\boxed{" * 125_000 + "}" * 125_000,
    "boxes without braces": r"\boxed" * 160_000,
    "boxes then spaces": (r"\boxed" + " " * 1000) * 1000,
    "backslashes": r"\boxed{" + "\\" * 10**6,
    "backslashes and boxes": "\\\\boxed" * 140_000,
    "anchors on a line": "answer: " * 125_000,
    "anchors with markup": "answer: $*. " * 80_000,
    "anchor and stars": "answer: " + "*" * 10**6,
    "anchor and dollars": "answer: x" + "$" * 10**6,
    "anchor and delimiters": "answer: " + r"\(" * 250_000 + r"\)" * 250_000,
    "anchor and delimiters in turn": "answer: " + r"\(\[" * 125_000 + r"\]\)" * 125_000,
    "anchor and displays": r"answer: \[ " * 90_000,
    "final, and spaces": ("final" + " " * 1000) * 1000,
    "full stops": "answer: " + "." * 10**6,
    "thinking": "<think>" * 140_000,
    "thinking, done": "</think>" * 125_000,
    "spaces": "the answer is" + " " * 10**6,
    "answers of JSON": '"answer": "' * 90_000,
    "an answer of JSON never closed": '"answer": "' + "x\\\\" * 300_000,
    "answers and spaces": ('"answer"' + " " * 1000) * 1000,
    "tags never closed": "<answer>" * 120_000,
    "a tag and signs": "<answer>" + "<" * 10**6,
    "marks": "#### 1\n" * 140_000,
    "marks and spaces": ("####" + " " * 1000 + "\n") * 1000,
}


@pytest.mark.parametrize("response", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_million_hostile_characters_cost_seconds_at_most(response: str) -> None:
    start = time.perf_counter()
    extract_answer(response)
    assert time.perf_counter() - start < 10.0


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("$x$", "x"),
        ("$$x$$.", "x"),
        (r"\( x \)", "x"),
        (r"\[\( x \)\]", "x"),
        (r"\$5", "5"),
        (r"5\$", "5"),
        ("x.", "x"),
        ("1, ...", "1, ..."),
        (r"\(x\) + \(y\)", r"\(x\) + \(y\)"),
        ("**x**", "**x**"),
        ("$", ""),
        ("", ""),
    ],
)
def test_delimiters_of_formulas_are_no_part_of_them(text: str, bare: str) -> None:
    assert strip_math(text) == bare
