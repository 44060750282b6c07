"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import sklpf

MODULES = [module.name for module in pkgutil.walk_packages(sklpf.__path__, "sklpf.")]


def examples(module):
    return [test for test in doctest.DocTestFinder().find(importlib.import_module(module)) if test.examples]


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_what_they_say(module):
    for test in examples(module):
        doctest.DocTestRunner().run(test)
