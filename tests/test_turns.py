"""Tasks that take turns get their answers together."""

import threading

import pytest

from sklpf._utils.turns import in_turn


def counting(n_questions, ask, name="x"):
    return [ask((name, i)) for i in range(n_questions)]


def test_all_that_wait_are_answered_in_one_call():
    asked = []

    def answer(questions):
        asked.append(list(questions))
        return [f"{name}{i}" for name, i in questions]

    tasks = [
        lambda ask, name=name, n=n: counting(n, ask, name)
        for name, n in [("a", 2), ("b", 3), ("c", 0)]
    ]
    assert in_turn(tasks, answer) == [["a0", "a1"], ["b0", "b1", "b2"], []]
    assert asked == [[("a", 0), ("b", 0)], [("a", 1), ("b", 1)], [("b", 2)]]
    assert in_turn([], answer) == []


@pytest.mark.parametrize("place", ["task", "answer"])
def test_an_error_ends_all_tasks(place):
    before = threading.active_count()

    def failing(ask):
        ask(0)
        if place == "task":
            raise ValueError("lost")

    def answer(questions):
        if place == "answer" and len(questions) == 3:
            raise ValueError("lost")
        return questions

    with pytest.raises(ValueError, match="lost"):
        in_turn([failing, lambda ask: counting(9, ask), lambda ask: counting(9, ask)], answer)
    assert threading.active_count() == before
