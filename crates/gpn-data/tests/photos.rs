//! Folders of photos that are the taxonomy.

mod made;

use std::fs;
use std::path::{Path, PathBuf};

use gpn_data::benchmark::{Benchmark, BuildConfig, build};
use gpn_data::{Source, SourceKind, SourceNote, SourceSpec};
use gpn_taxonomy::Taxonomy;

fn open(kind: SourceKind, path: &Path) -> Box<dyn Source> {
    gpn_data::open(&SourceSpec { kind, path: path.to_owned() }).unwrap()
}

fn files(names: &[&str]) -> made::Files {
    names.iter().zip(1..).map(|(name, red)| ((*name).to_owned(), made::png([red, 0, 0]))).collect()
}

fn taxonomy(source: &dyn Source) -> Taxonomy {
    source.taxonomy().unwrap().unwrap().taxonomy
}

/// Edges as `parent>child`, sorted.
fn edges(graph: &Taxonomy) -> Vec<String> {
    let mut edges: Vec<String> =
        graph.edges().map(|(p, c)| format!("{}>{}", graph.id(p), graph.id(c))).collect();
    edges.sort();
    edges
}

fn ids(source: &dyn Source) -> Vec<&str> {
    source.leaves().iter().map(|leaf| leaf.id.as_str()).collect()
}

const SHOP: [&str; 5] = [
    "Fruit/Apple/Golden/1.png",
    "Fruit/Apple/Golden/2.png",
    "Fruit/Apple/Royal/1.png",
    "Fruit/Pear/1.png",
    "Vegetables/Zucchini/1.png",
];

#[test]
fn folders_are_the_taxonomy_in_every_packing() {
    let folder = tempfile::tempdir().unwrap();
    let plain = files(&SHOP);
    let wrapped: made::Files =
        plain.iter().map(|(name, bytes)| (format!("shop-1.0/{name}"), bytes.clone())).collect();
    let mut paths: Vec<PathBuf> = vec![made::directory(&folder.path().join("plain"), &plain)];
    paths.push(made::directory(&folder.path().join("wrapped"), &wrapped));
    for (name, bytes) in [
        ("a.tar", made::tar(&plain)),
        ("b.tar", made::tar(&wrapped)),
        ("c.zip", made::zip(&wrapped)),
        ("d.tgz", made::gzip(&made::tar(&wrapped))),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        paths.push(folder.path().join(name));
    }
    for path in paths {
        let source = open(SourceKind::Photos, &path);
        assert_eq!(ids(&*source), ["Golden", "Pear", "Royal", "Zucchini"], "{}", path.display());
        let graph = taxonomy(&*source);
        assert_eq!(
            edges(&graph),
            [
                "Apple>Golden",
                "Apple>Royal",
                "Fruit>Apple",
                "Fruit>Pear",
                "Vegetables>Zucchini",
                "root>Fruit",
                "root>Vegetables"
            ]
        );
        assert_eq!(source.notes(), []);
        for (index, red) in [1, 2, 3, 4, 5].into_iter().enumerate() {
            assert_eq!(source.image(index).unwrap().pixels()[765], red);
        }
    }
}

#[test]
fn one_level_of_folders_gives_what_imagefolder_gives() {
    let folder = tempfile::tempdir().unwrap();
    let content = files(&["cat/10.png", "cat/9.png", "dog/1.png", "Bird 10/x.png", "Bird 9/x.png"]);
    let path = made::directory(folder.path(), &content);
    let (new, old) = (open(SourceKind::Photos, &path), open(SourceKind::ImageFolder, &path));
    assert_eq!(new.leaves(), old.leaves());
    assert_eq!(new.samples(), old.samples());
    for index in 0..content.len() {
        assert_eq!(new.image(index).unwrap(), old.image(index).unwrap());
    }
    assert_eq!(edges(&taxonomy(&*new)), ["root>Bird 10", "root>Bird 9", "root>cat", "root>dog"]);
}

#[test]
fn folders_of_one_name_are_two_classes_and_inner_classes_keep_their_photos() {
    let folder = tempfile::tempdir().unwrap();
    let content = files(&[
        "Fruit/Juice/1.png",
        "Packages/Juice/1.png",
        "Fruit/Apple/1.png",
        "Fruit/a.png",
        "Fruit/b.png",
        "Fruit/Thumbs.db",
        "Fruit/.DS_Store",
        "__MACOSX/Fruit/1.png",
        "lost.png",
    ]);
    let source = open(SourceKind::Photos, &made::directory(folder.path(), &content));
    assert_eq!(ids(&*source), ["Apple", "Fruit", "Fruit/Juice", "Packages/Juice"]);
    let names: Vec<_> = source.leaves().iter().map(|leaf| leaf.name.as_deref()).collect();
    assert_eq!(names, [None, None, Some("Juice"), Some("Juice")]);
    let of = |id: &str| {
        let leaf = ids(&*source).iter().position(|known| *known == id).unwrap() as u32;
        source.samples().iter().filter(|sample| sample.leaf == leaf).count()
    };
    assert_eq!([of("Fruit"), of("Apple"), of("Fruit/Juice")], [2, 1, 1]);
    let first = vec!["lost.png".to_owned()];
    assert_eq!(
        source.notes(),
        [
            SourceNote::OutsideFolders { photos: 1, first },
            SourceNote::BetweenFolders { photos: 2, classes: vec!["Fruit".into()] }
        ]
    );
    let graph = taxonomy(&*source);
    assert_eq!(graph.name(graph.find("Packages/Juice").unwrap()), "Juice");
    assert_eq!(graph.len(), 6);
}

#[test]
fn texts_named_like_classes_describe_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = files(&["shop/Fruit/Apple/1.png", "shop/Fruit/Tea/1.png", "shop/Drink/Tea/1.png"]);
    for (name, text) in [
        ("texts/Fruit/Apple.txt", "\u{feff}A round fruit.\n"),
        ("texts/Drink/Tea.txt", "Leaves in water."),
        ("texts/Tea.txt", "Which one is open."),
        ("texts/Fruit.txt", "Sweet."),
        ("shop/LICENSE", "MIT"),
        ("texts/other.txt", "x"),
    ] {
        content.push((name.into(), text.as_bytes().to_vec()));
    }
    let source = open(SourceKind::Photos, &made::directory(folder.path(), &content));
    let graph = taxonomy(&*source);
    let description = |id: &str| graph.description(graph.find(id).unwrap());
    assert_eq!(description("Apple"), Some("A round fruit."));
    assert_eq!(description("Drink/Tea"), Some("Leaves in water."));
    assert_eq!(description("Fruit/Tea"), None);
    assert_eq!(description("Fruit"), Some("Sweet."));
    assert_eq!(graph.len(), 6);
}

#[test]
fn misnamed_photos_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let content = files(&["a/IMG_1", "a/IMG_2.heic", "b/1.png"]);
    let source = open(SourceKind::Photos, &made::directory(folder.path(), &content));
    assert_eq!(source.samples().len(), 3);
    assert!((0..3).all(|index| source.image(index).is_ok()));
    assert_eq!(source.notes(), []);
}

#[test]
fn a_benchmark_is_built_from_folders_with_inner_photos() {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for class in ["Fruit", "Fruit/Apple", "Fruit/Pear", "Nut/Hazel", "Nut/Walnut"] {
        names.extend((0..6).map(|number| format!("{class}/{number}.png")));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let path = made::directory(&folder.path().join("photos"), &files(&names));
    let source = gpn_data::open(&path.to_str().unwrap().parse().unwrap()).unwrap();
    let config = BuildConfig { size: 8, classes_only: false, ..BuildConfig::default() };
    let out = folder.path().join("bench");
    build(&*source, &taxonomy(&*source), "photos", &config, &out, &()).unwrap();
    let benchmark = Benchmark::open(&out).unwrap();
    assert_eq!(benchmark.classes().len(), 7);
}

/// The groceries of Klasson et al., where the folder with published data has them.
#[test]
fn published_groceries_are_102_classes() {
    let Some(data) = gpn_golden::data_folder() else { return };
    let path = data.join("grocery-store.tar");
    if !path.is_file() {
        eprintln!("skipped: {} is absent", path.display());
        return;
    }
    let spec: SourceSpec = path.to_str().unwrap().parse().unwrap();
    assert_eq!(spec.kind, SourceKind::Photos);
    let source = gpn_data::open(&spec).unwrap();
    let graph = taxonomy(&*source);
    // The root is none of the data set's own.
    assert_eq!((source.leaves().len(), graph.len() - 1, source.samples().len()), (82, 102, 5421));
    assert_eq!(source.notes(), []);
    let described =
        source.leaves().iter().filter(|leaf| graph.description(graph.find(&leaf.id).unwrap()).is_some());
    assert_eq!(described.count(), 81);
    assert!((0..source.samples().len()).step_by(200).all(|index| source.image(index).is_ok()));
}
