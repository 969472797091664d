"""The class graph: from everything that holds one, asked about, written, shown, pickled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpn

EDGES = [("animal", "cat"), ("animal", "dog"), ("dog", "beagle"), ("dog", "boxer"), ("pet", "cat")]


@pytest.fixture
def taxonomy() -> gpn.Taxonomy:
    return gpn.Taxonomy(EDGES)


def test_questions(taxonomy: gpn.Taxonomy) -> None:
    assert len(taxonomy) == 6 and "cat" in taxonomy and "cow" not in taxonomy
    assert taxonomy.parents("cat") == ["animal", "pet"]
    assert taxonomy.children("dog") == ["beagle", "boxer"]
    assert taxonomy.roots == ["animal", "pet"] and set(taxonomy.leaves) == {"cat", "beagle", "boxer"}
    assert taxonomy.neighbours("beagle", hops=2) == ["dog", "animal", "boxer"]
    assert taxonomy.ancestors("cat") == ["animal", "pet"]
    assert set(taxonomy.descendants("animal")) == {"cat", "dog", "beagle", "boxer"}
    assert taxonomy.descendants("animal").index("dog") < taxonomy.descendants("animal").index("beagle")
    assert taxonomy.leaves_below("dog") == ["beagle", "boxer"]
    assert taxonomy.path("boxer") == ["animal", "dog", "boxer"]
    assert taxonomy.distance("beagle", "cat") == 3
    distances = taxonomy.distances(["cat", "dog"])
    assert distances.dtype == np.int64
    assert dict(zip(taxonomy.ids, distances)) == {"animal": 1, "cat": 0, "dog": 0, "beagle": 1, "boxer": 1, "pet": 1}
    assert taxonomy.subgraph(["beagle"]).edges == [("animal", "dog"), ("dog", "beagle")]


def test_every_form_gives_the_same_graph(tmp_path) -> None:
    pandas, networkx = pytest.importorskip("pandas"), pytest.importorskip("networkx")
    edges = EDGES[:4]
    reference = set(gpn.Taxonomy(edges).edges)
    frame = pandas.DataFrame(edges, columns=["parent", "child"])
    (tmp_path / "kinds.csv").write_text("child,parent\n" + "".join(f"{child},{parent}\n" for parent, child in edges))
    levels = pandas.DataFrame({"a": ["animal"] * 3, "b": ["cat", "dog", "dog"], "c": [None, "beagle", "boxer"]})
    for source in [
        np.array(edges),
        {"animal": {"cat": {}, "dog": ["beagle", "boxer"]}},
        {"animal": {"cat": None, "dog": {"beagle": [], "boxer": {}}}},
        frame,
        {"child": [child for _, child in edges], "parent": [parent for parent, _ in edges]},
        levels,
        networkx.DiGraph(edges),
        tmp_path / "kinds.csv",
        f"edges:{tmp_path / 'kinds.csv'}",
        gpn.Taxonomy(edges),
    ]:
        assert set(gpn.Taxonomy(source).edges) == reference, source
    polars = pytest.importorskip("polars")
    assert set(gpn.Taxonomy(polars.DataFrame({"child": [c for _, c in edges], "parent": [p for p, _ in edges]})).edges) == reference


def test_names_and_round_trips(tmp_path) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([("n1", "n2")])
    graph.nodes["n2"].update(name="cat", description="a small feline")
    taxonomy = gpn.Taxonomy(graph)
    assert taxonomy.name("n2") == "cat" and taxonomy.name("n1") == "n1"
    assert taxonomy.description("n2") == "a small feline"
    taxonomy.save(tmp_path / "t.json")
    for copy in [pickle.loads(pickle.dumps(taxonomy)), gpn.Taxonomy(taxonomy.to_networkx()), gpn.Taxonomy(tmp_path / "t.json")]:
        assert copy == taxonomy and copy.description("n2") == "a small feline"
    with pytest.raises(gpn.ConflictError, match="it exists already"):
        taxonomy.save(tmp_path / "t.json")
    taxonomy.save(tmp_path / "t.json", replace=True)


def test_numbers_are_classes_too() -> None:
    taxonomy = gpn.Taxonomy([(0, 1), (0, 2)])
    assert taxonomy.parents(1) == ["0"] and 2 in taxonomy


def test_what_is_wrong_is_said() -> None:
    for source, message in [
        ([("a", "b"), ("b", "a")], "cycle: "),
        ([("a", "a")], "its own parent"),
        ([("a",)], r"entry 0 is no pair \(parent, child\)"),
        (["ab"], "entry 0 is no pair"),
        ({"animal": "cat"}, "`cat` stands where children are expected"),
        ({}, "there is no class in it"),
        (7, "entry 0 is no pair"),
        ("kinds:x", "unknown kind"),
    ]:
        with pytest.raises(gpn.InputError, match=message):
            gpn.Taxonomy(source)
    with pytest.raises(FileNotFoundError):
        gpn.Taxonomy("missing.csv")
    with pytest.raises(KeyError) as raised:
        gpn.Taxonomy(EDGES).parents("beagel")
    assert str(raised.value) == "unknown class: `beagel` (did you mean `beagle`?); use ids of the taxonomy"
    assert isinstance(raised.value, gpn.GpnError) and raised.value.kind == "not_found"


def test_a_million_levels_do_not_overflow() -> None:
    nested: dict = {}
    for depth in range(50_000):
        nested = {str(depth): nested}
    taxonomy = gpn.Taxonomy(nested)
    assert len(taxonomy) == 50_000 and len(taxonomy.path("0")) == 50_000
    while nested:  # freed by hand: CPython frees nested dicts by recursion
        nested = nested.popitem()[1]


def test_shown(taxonomy: gpn.Taxonomy) -> None:
    assert repr(taxonomy) == "Taxonomy(6 classes, 5 edges, below animal, pet)"
    assert '"animal" -> "cat";' in taxonomy.to_dot()
    html = gpn.Taxonomy([("<b>", "a&b")])._repr_html_()
    assert "&lt;b&gt;" in html and "a&amp;b" in html and "<b>a" not in html
    assert html.count("<ul>") == html.count("</ul>")
    table = taxonomy.table()
    assert list(table) == ["id", "name", "level", "parents", "children", "leaf"]
    pandas = pytest.importorskip("pandas")
    assert len(pandas.DataFrame(table)) == 6
