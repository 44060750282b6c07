"""The examples in docstrings run, and public docstrings are complete."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import sklpf
import sklpf.paths


def public(module):
    return module.name not in ("sklpf.kernels", "sklpf._utils", "sklpf.__main__")


MODULES = [module.name for module in pkgutil.walk_packages(sklpf.__path__, "sklpf.")]
PUBLIC = [
    "sklpf",
    *(module.name for module in pkgutil.iter_modules(sklpf.__path__, "sklpf.") if public(module)),
]
# a docstring, all parameters, each described, what is returned
COMPLETE = {"GL08", "PR01", "PR07", "RT01"}


def examples(module):
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return [test for test in found if test.examples]


SLOW = (  # some seconds each
    *("models.mcrbm._model", "models.bilinear._model", "models.factorial._model"),
    *("models.lda._path", "display._topics", "display._run"),
    *("interop._prior_transform", "partition.levels._rts", "partition.levels._adaptive"),
    *("partition.levels._reweighting", "partition.weights._independent"),
    "partition.populations._adaptive_smc",
)


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=[pytest.mark.large] * (name.removeprefix("sklpf.") in SLOW))
        for name in MODULES
    ],
)
def test_examples_print_what_they_say(module):
    failed = [test.name for test in examples(module) if doctest.DocTestRunner().run(test).failed]
    assert not failed


def public_objects():
    """Every public class and function, once, under the first of its names."""
    found = {}
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            item = getattr(importlib.import_module(module), name)
            if inspect.isclass(item) or inspect.isfunction(item):
                found.setdefault(item, f"{module}.{name}")
    return found


OBJECTS = public_objects()
PROTOCOLS = [
    item
    for item in OBJECTS
    if getattr(item, "_is_protocol", False) or item is sklpf.paths.OptionalMethods
]


def fields(item):
    """Of a record, which users read and don't make, the names of its fields; those of a public base
    it explains.
    """
    if dataclasses.is_dataclass(item) and item.__dataclass_params__.frozen:
        above = {name for base in item.__mro__[1:] if base in OBJECTS for name in fields(base)}
        return {field.name for field in dataclasses.fields(item)} - above
    return set(getattr(item, "_fields", ()))


def function(member):
    return getattr(member, "fget", None) or getattr(member, "__func__", member)


def own(cls):
    """Public methods and properties that a class of this package defines itself, or has from a
    private base.
    """
    for name in dir(cls):
        home = next(base for base in cls.__mro__ if name in vars(base))
        inherited = home in OBJECTS and home is not cls
        if inherited or name.startswith("_") or not home.__module__.startswith("sklpf"):
            continue
        if inspect.isfunction(function(vars(home)[name])):
            yield name


def said_elsewhere(cls, name):
    """Whether a method is one that a base or `OptionalMethods` defines; it then has to say
    only what differs.
    """
    homes = [base for base in cls.__mro__ if name in vars(base)]
    return len(homes) > 1 or any(name in vars(group) for group in PROTOCOLS if group not in homes)


def faults(name, codes):
    numpydoc = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")
    errors = numpydoc.validate(name)["errors"]
    return [f"{name}: {code} {text}" for code, text in errors if code in codes]


def class_faults(cls, name):
    """What the docstring of a class lacks; protocols and records, which nobody calls, need no
    examples.
    """
    if cls in PROTOCOLS:
        return faults(name, {"GL08"})
    if fields(cls):
        missing = sorted(
            field for field in fields(cls) if not re.search(rf"\b{field}\b.* : ", cls.__doc__ or "")
        )
        return [f"{name}: no description of the field {field}" for field in missing]
    return faults(name, COMPLETE | {"EX01"})


@pytest.mark.parametrize("item", [*filter(inspect.isfunction, OBJECTS)], ids=OBJECTS.get)
def test_docstrings_of_functions_are_complete(item):
    found = faults(OBJECTS[item], COMPLETE)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("item", [*filter(inspect.isclass, OBJECTS)], ids=OBJECTS.get)
def test_docstrings_of_classes_are_complete(item):
    """Methods of a protocol, the lines of a table, and those that a base has explained may have a
    sentence alone.
    """
    found = class_faults(item, OBJECTS[item])
    for method in own(item):
        name = f"{OBJECTS[item]}.{method}"
        if item not in PROTOCOLS and not said_elsewhere(item, method):
            found += faults(name, COMPLETE)
        elif not inspect.getdoc(getattr(item, method)):
            found.append(f"{name}: no docstring")
    assert not found, "\n".join(found)
