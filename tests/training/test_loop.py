"""The loop that models train with: its order, what it prints, and how it ends."""

from sklpf.training import train


class Trainer:
    """Writes down what is done with it."""

    def __init__(self):
        self.done = []

    def run(self):
        self.done.append("run")

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


def test_a_callback_ends_training_after_all_are_called():
    trainer = Trainer()
    callbacks = [trainer.end_at_two, trainer.quiet]
    assert train(trainer, 5, callbacks=callbacks) == (2, True)
    assert trainer.done == ["run", "end 1", "quiet 1", "run", "end 2", "quiet 2"]
