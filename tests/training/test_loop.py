"""The loop that models train with: its order, what it prints, and how it ends."""

import re

from sklpf._utils.progress import reporting
from sklpf.training import train


class Trainer:
    """Writes down what is done with it."""

    def __init__(self):
        self.done = []

    def run(self):
        self.done.append("run")

    def report(self, trainer, iteration):
        assert trainer is self
        self.done.append("report")
        return f"loss = {iteration}"

    def quiet(self, trainer, iteration):
        self.done.append(f"quiet {iteration}")

    def end_at_two(self, trainer, iteration):
        self.done.append(f"end {iteration}")
        return iteration == 2


def test_passes_are_made_and_nothing_is_printed_unless_asked_for(capsys):
    trainer = Trainer()
    assert train(trainer, 3) == (3, False)
    assert trainer.done == ["run"] * 3
    assert train(trainer, 0) == (0, False)
    assert capsys.readouterr().out == ""


class Model:
    """Trains in `fit`, which says how far it is where `verbose`."""

    def __init__(self, verbose):
        self.verbose = verbose

    @reporting
    def fit(self, trainer):
        return train(
            trainer, 5, report=trainer.report, callbacks=[trainer.end_at_two, trainer.quiet]
        )


def test_a_callback_ends_training_after_all_are_called_and_the_line_is_said(capsys):
    trainer = Trainer()
    assert Model(verbose=1).fit(trainer) == (2, True)
    assert trainer.done == [
        "run",
        "end 1",
        "quiet 1",
        "report",
        "run",
        "end 2",
        "quiet 2",
        "report",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert re.fullmatch(
        r"\[Model\] pass 2 of 5, loss = 2, [\d.]+ (ms|s), at most [\d.]+ (ms|s) left", lines[1]
    )
