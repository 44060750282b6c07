"""The site, which needs no network to be built or read.

Built by `python -m sphinx -n -W --keep-going doc doc/_build/html`.
"""

import contextlib
import importlib.metadata
import os
import re
import tomllib
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import matplotlib.pyplot as plt
from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.ext import autosummary
from sphinx_gallery.sorting import ExampleTitleSortKey

from sklpf.partition import alarms

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, CHANGES = SETTINGS["project"], SETTINGS["tool"]["towncrier"]
SOURCE = PROJECT["urls"]["Source"]

project = PROJECT["name"]
author = copyright = PROJECT["authors"][0]["name"]
version = release = importlib.metadata.version(project)

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "notfound.extension",
    "sphinxcontrib.bibtex",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "changes",
    "paper",
    "auto_examples/**/*.md5",
    "auto_examples/**/*.ipynb",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = True
default_role = "literal"
suppress_warnings = ["config.cache"]  # functions in the gallery's options

# Markdown
myst_enable_extensions = [
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3
bibtex_bibfiles = [file.name for file in Path(__file__).parent.glob("*.bib")]
bibtex_reference_style = "author_year"

# Formulas as MathML, which browsers typeset by themselves
html_math_renderer = "mathml"


def visit_math(self, node):
    """Write a formula within a line."""
    self.body.append(tex2mathml(node.astext()))
    raise SkipNode


def visit_math_block(self, node):
    """Write a formula on a line of its own, which scrolls if it is too wide."""
    formula = tex2mathml(node.astext(), as_block=True)
    self.body.append(f'<div class="formula">{formula}</div>')
    raise SkipNode


# API reference: what a class has from this package; scikit-learn documents the
# rest
autosummary_generate = True
# methods of scikit-learn's own that all estimators have
autosummary_context = {
    "left_out": {
        "__init__",
        "get_metadata_routing",
        "get_params",
        "set_callbacks",
        "set_output",
        "set_params",
    }
}
toc_object_entries_show_parents = "hide"
autosummary.WELL_KNOWN_ABBREVIATIONS += (
    "eq.",
    "eqs.",
    "sect.",
)  # which end no sentence
autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False


def skip_others(app, what, name, member, skip, options):
    """True for members from scikit-learn or the standard library."""
    function = getattr(member, "fget", None) or getattr(
        member, "__func__", member
    )
    module = getattr(function, "__module__", None) or type(function).__module__
    return (
        True
        if module.split(".")[0] in ("sklearn", "builtins", "typing")
        and callable(function)
        else None
    )


def lead_with_the_example(app, what, name, item, options, lines):
    """Put the examples of a class, which numpydoc puts last, first."""
    starts = [
        i for i, line in enumerate(lines) if line == ".. rubric:: Examples"
    ]
    first = [
        i
        for i, line in enumerate(lines)
        if re.match(r":\w+:|\.\. rubric", line)
    ]
    if what == "class" and starts and first[0] < starts[0]:
        lines[first[0] :] = [
            *lines[starts[0] :],
            "",
            *lines[first[0] : starts[0]],
        ]


# Gallery
STRICT = contextlib.ExitStack()


def colours(gallery_conf, file):
    """Pictures in colours that colour-blind readers can tell apart."""
    plt.style.use("tableau-colorblind10")


def warnings_are_errors(gallery_conf, file, when):
    """Every warning in an example is an error, as with `python -W error`."""
    STRICT.close()
    if when == "before":
        STRICT.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")


class SizesFirst(ExampleTitleSortKey):
    """By title, but the example of the README before all others."""

    def __call__(self, filename):
        is_first = filename == "plot_digits_selection.py"
        return "" if is_first else super().__call__(filename)


os.environ.setdefault("MPLBACKEND", "Agg")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "reset_modules": ("matplotlib", colours, warnings_are_errors),
    "reset_modules_order": "both",
    "parallel": True,  # as many processes as sphinx-build -j says
    "subsection_order": [
        "../examples/models",
        "../examples/evidence",
        "../examples/training",
        "../examples/estimators",
    ],
    "within_subsection_order": SizesFirst,
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("sklpf",),
    "reference_url": {"sklpf": None},
    "plot_gallery": "True",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
}

# Pages
html_baseurl = PROJECT["urls"]["Documentation"]
notfound_urls_prefix = urlsplit(html_baseurl).path
# what is printed is not copied, nor are prompts
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_context = {  # for _templates/layout.html
    "description": PROJECT["description"],
    "social_card": f"{SOURCE}/raw/main/doc/_static/social_card.png",
}
html_theme_options = {
    "logo": {"text": f"{project} {release}"},
    "github_url": SOURCE,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}


def add_fragments(app, docname, source):
    """Put what is not released yet into the changelog, by kind."""
    if docname != "changelog":
        return
    kinds = {kind["directory"]: kind["name"] for kind in CHANGES["type"]}
    fragments = sorted((ROOT / CHANGES["directory"]).glob("*.md"))
    parts = ["## Not released"] if fragments else []
    for kind, name in kinds.items():
        texts = [
            file.read_text(encoding="utf-8")
            for file in fragments
            if file.name.endswith(f".{kind}.md")
        ]
        items = [
            f"- {'  '.join(text.strip().splitlines(keepends=True))}"
            for text in texts
        ]
        parts += [f"### {name}", "\n".join(items)] if items else []
    start = CHANGES["start_string"]
    source[0] = source[0].replace(start, "\n\n".join([start, *parts]) + "\n")


TASKS = "models", "estimators", "densities", "interop", "displays"


def list_public_names(app, docname, source):
    """Put the names that users need into the reference's index, by task."""
    if docname != "api/index":
        return
    parts = []
    for page in TASKS:
        text = (ROOT / "doc" / "api" / f"{page}.md").read_text(encoding="utf-8")
        title = re.match(r"# (.*)", text).group(1)
        parts.append(f"## [{title}]({page}.md)")
        parts += ["```{eval-rst}", ".. autosummary::", "   :nosignatures:", ""]
        for section in text.split(".. currentmodule:: ")[1:]:
            module = section.split("\n", 1)[0]
            names = re.findall(r"^ {3}(\w+)$", section, re.M)
            parts += [f"   ~{module}.{name}" for name in names]
        parts.append("```")
    tables = "\n".join(parts)
    source[0] = re.sub("On GitHub.*", lambda _: tables, source[0])


def list_alarms(app, docname, source):
    """Put the table of alarms into its page of the guide."""
    if docname == "guide/alarms":
        source[0] = source[0].replace("<!-- alarms -->", alarms.page())


def setup(app):
    app.add_html_math_renderer(
        "mathml", (visit_math, None), (visit_math_block, None)
    )
    app.connect("source-read", list_public_names)
    app.connect("source-read", add_fragments)
    app.connect("source-read", list_alarms)
    app.connect("autodoc-skip-member", skip_others)
    # after numpydoc
    app.connect(
        "autodoc-process-docstring", lead_with_the_example, priority=600
    )
