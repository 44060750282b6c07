"""Tasks that take turns: what all of them ask is answered in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

Ask = Callable[[Any], Any]


class _Stopped(BaseException):
    """Another task failed, or the caller was interrupted."""


_STOP = object()


def in_turn(
    tasks: Sequence[Callable[[Ask], Any]], answer: Callable[[list[Any]], Sequence[Any]]
) -> list[Any]:
    """Return the results of all tasks, which get answers to their questions together.

    A task runs until it asks something; then the next one runs. When all that are left have asked,
    their questions are answered in one call, in the order of the tasks. One task runs at any time,
    so that nothing depends on how threads are scheduled.

    Parameters
    ----------
    tasks : sequence of callable
        task(ask) gives a result; ask(question) gives the answer.
    answer : callable
        A function of a list of questions, which returns the answers in the same order.
    """
    turns = [_Turn(task) for task in tasks]
    waiting = turns
    answers: Sequence[Any] = [None] * len(turns)  # to no question: they begin
    try:
        while waiting:
            for turn, given in zip(waiting, answers):
                turn.go_on(given)
            waiting = [turn for turn in waiting if turn.is_asking]
            answers = answer([turn.question for turn in waiting]) if waiting else []
    finally:
        for turn in turns:
            turn.stop()
    return [turn.result for turn in turns]


class _Turn:
    """A task in a thread of its own, which stands still unless it is its turn."""

    def __init__(self, task: Callable[[Ask], Any]):
        self._task = task
        self._answers: SimpleQueue = SimpleQueue()
        self._handed_back: SimpleQueue = SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.is_asking = False
        self.question: Any = None
        self.result: Any = None

    def go_on(self, answer: Any) -> None:
        """Run until the task asks again, or ends; raises what the task raises."""
        if self._thread.ident is None:
            self._thread.start()
        self._answers.put(answer)
        self._handed_back.get()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End a task that has not ended by itself."""
        if self._thread.ident is not None:
            self._answers.put(_STOP)
            self._thread.join()

    def _ask(self, question):
        self.question = question
        self.is_asking = True
        self._handed_back.put(None)
        return self._next_answer()

    def _next_answer(self):
        answer = self._answers.get()
        self.is_asking = False
        if answer is _STOP:
            raise _Stopped
        return answer

    def _run(self):
        try:
            self._next_answer()
            self.result = self._task(self._ask)
        except _Stopped:
            pass
        except BaseException as error:
            self._error = error
        self._handed_back.put(None)
