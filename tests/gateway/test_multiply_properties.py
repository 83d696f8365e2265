"""What must hold of ``embedded/multiply`` for every prompt."""

import random
import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.gateway.embedded import make_policy
from osmosis_ai.gateway.embedded.chat import ChatRequest

numbers = st.integers(-(10**12), 10**12)
seeds = st.integers(-(2**40), 2**40)
signs = st.sampled_from([" x ", "*", " * ", " × ", "×", " times ", " X ", " multiplied by "])
frames = st.sampled_from(
    [
        "{}",
        "What is {}?",
        "Compute {}.",
        "Please work out ({}) for me",
        "Question:\n{}\nThink.",
        "={}",
    ]
)


def reply(policy: str, prompt: str) -> str:
    request = ChatRequest.model_validate({"messages": [{"role": "user", "content": prompt}]})
    return make_policy("multiply", policy).answer(request).text


def final_number(text: str) -> int:
    found = re.search(r"#### (-?\d+)$", text)
    assert found, text
    return int(found[1])


@given(numbers, numbers, signs, frames, seeds)
def test_never_wrong_when_told_so(a: int, b: int, sign: str, frame: str, seed: int) -> None:
    prompt = frame.format(f"{a}{sign}{b}")
    assert final_number(reply(f"wrong=0&seed={seed}", prompt)) == a * b


@given(numbers, numbers, signs, seeds)
def test_always_wrong_when_told_so(a: int, b: int, sign: str, seed: int) -> None:
    answer = final_number(reply(f"wrong=1&seed={seed}", f"{a}{sign}{b}"))
    assert 1 <= abs(answer - a * b) <= 9


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), seeds, st.randoms())
def test_answers_do_not_depend_on_their_order(
    pairs: list[tuple[int, int]], seed: int, shuffler: random.Random
) -> None:
    prompts = [f"{a} x {b}" for a, b in pairs]
    before = {prompt: reply(f"wrong=0.5&seed={seed}", prompt) for prompt in prompts}
    shuffler.shuffle(prompts)
    assert before == {prompt: reply(f"wrong=0.5&seed={seed}", prompt) for prompt in prompts}


@given(st.text())
def test_any_text_gets_an_answer(prompt: str) -> None:
    assert reply("wrong=0.5", prompt)


def wrong_ones(seed: int) -> list[int]:
    return [
        n for n in range(400) if final_number(reply(f"wrong=0.25&seed={seed}", f"{n} x 7")) != n * 7
    ]


def test_about_the_asked_fraction_is_wrong_and_the_seed_chooses_which() -> None:
    assert 70 <= len(wrong_ones(7)) <= 130
    assert wrong_ones(7) != wrong_ones(8)


def test_another_process_gives_the_same_answers() -> None:
    code = "from tests.gateway.test_multiply_properties import wrong_ones; print(wrong_ones(7))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == str(wrong_ones(7))


def test_whitespace_changes_nothing() -> None:
    for n in wrong_ones(7)[:20]:
        policy = "wrong=0.25&seed=7"
        assert reply(policy, f"{n} x 7") == reply(policy, f"\n{n}  x 7 \n")
