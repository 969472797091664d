"""The examples of the docs and of docstrings, as they stand."""

from __future__ import annotations

import doctest
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import gpn

DOCS = Path(__file__).parents[3] / "docs"
MODULES = ["gpn", "gpn._estimator", "gpn._native", "gpn.hub", "gpn.metrics", "gpn.experiment"]


def sections(page: str) -> list[tuple[str, list[str], str]]:
    """Heading, packages it needs, and code of every section with code."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = []
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading = part.splitlines()[0]
        code = re.findall(r"^```python\n(.*?)^```", part, flags=re.M | re.S)
        needs = [word for line in re.findall(r"<!-- needs: (.*?) -->", part) for word in line.split()]
        if code:
            found.append((heading, needs, "\n".join(code)))
    return found


def prepare(folder: Path) -> None:
    """Files that examples read: photos of four classes, a table, a taxonomy."""
    random = np.random.default_rng(0)
    if find_spec("PIL"):
        from PIL import Image

        for name, colour in {"apple": (200, 30, 30), "pear": (170, 200, 60), "carrot": (240, 130, 20), "leek": (60, 140, 60)}.items():
            (folder / "photos" / name).mkdir(parents=True)
            for number in range(3):
                noise = random.integers(0, 40, (64, 64, 3))
                Image.fromarray((noise + np.array(colour) * 0.8).astype(np.uint8)).save(folder / "photos" / name / f"{number}.jpg")
    (folder / "kinds.csv").write_text(
        "child,parent\nfruit,food\nvegetable,food\napple,fruit\npear,fruit\nplum,fruit\ncarrot,vegetable\nleek,vegetable\nkale,vegetable\n"
    )
    names = ["apple", "pear", "plum", "carrot", "leek", "kale"]
    kinds = np.repeat(random.normal(size=(2, 12)), 3, axis=0)
    means = 2 * kinds + random.normal(size=(6, 12))
    labels = np.repeat(np.arange(6), 30)
    rows = (means[labels] + 0.5 * random.normal(size=(180, 12))).astype(np.float32)
    given = np.arange(180) % 30 < 20
    names = np.array(names)
    np.savez(folder / "embeddings.npz", X=rows[given], y=names[labels[given]], X_test=rows[~given], y_test=names[labels[~given]])


CASES = [(page, *section) for page in ["python.md", "coming-from.md"] for section in sections(page)]


@pytest.mark.parametrize(("page", "heading", "needs", "code"), CASES, ids=[f"{case[0]}: {case[1]}" for case in CASES])
def test_examples_of_the_docs(page, heading, needs, code, tmp_path, monkeypatch) -> None:
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "example"}
    exec(compile(code, f"{page}: {heading}", "exec"), namespace)
    # What a comment says an expression gives is what it gives.
    for expression, claimed in re.findall(r"^([a-z_.]+\(.*\))\s+# (\[.*\])$", code, flags=re.M):
        got = eval(expression, namespace)
        assert np.asarray(got).tolist() == eval(claimed, namespace), expression


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name) -> None:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for attribute in [module, *vars(module).values()]:
        if attribute is module or getattr(attribute, "__module__", "").startswith("gpn"):
            for test in finder.find(attribute, name, module=module, globs={"gpn": gpn}):
                runner.run(test)
    assert runner.failures == 0
    if name in ("gpn._native", "gpn._estimator", "gpn.metrics"):
        assert runner.tries > 0
