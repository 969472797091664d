//! Each kind of source on a small data set written by the test.

mod made;

use std::fs;
use std::path::Path;

use gpn_data::{SampleKind, Source, SourceKind, SourceSpec};

fn open(kind: SourceKind, path: &Path) -> Box<dyn Source> {
    gpn_data::open(&SourceSpec { kind, path: path.to_owned() }).unwrap()
}

fn error(kind: SourceKind, path: &Path) -> String {
    match gpn_data::open(&SourceSpec { kind, path: path.to_owned() }) {
        Ok(source) => panic!("{} opens", source.describe()),
        Err(error) => error.to_string(),
    }
}

fn ids(source: &dyn Source) -> Vec<&str> {
    source.leaves().iter().map(|leaf| leaf.id.as_str()).collect()
}

fn files(source: &dyn Source) -> Vec<&str> {
    source.samples().iter().map(|sample| sample.file.as_str()).collect()
}

#[test]
fn tiny_imagenet_is_the_same_in_every_packing() {
    let folder = tempfile::tempdir().unwrap();
    let content = made::tiny_imagenet();
    let directory = made::directory(&folder.path().join("plain"), &content);
    let packings = [("t.tar", made::tar(&content)), ("t.zip", made::zip(&content))];
    let mut paths = vec![directory.clone(), directory.join("tiny-imagenet-200")];
    for (name, bytes) in packings {
        fs::write(folder.path().join(name), bytes).unwrap();
        paths.push(folder.path().join(name));
    }
    fs::write(folder.path().join("t.tgz"), made::gzip(&made::tar(&content))).unwrap();
    paths.push(folder.path().join("t.tgz"));

    for path in paths {
        let source = open(SourceKind::TinyImagenet, &path);
        assert_eq!(source.kind(), SampleKind::Images);
        assert_eq!(ids(&*source), ["n01", "n02"]);
        assert_eq!(source.leaves()[0].name.as_deref(), Some("goldfish"));
        let expected = [("n01", 1), ("n01", 2), ("n01", 10), ("n02", 1), ("n02", 2), ("n02", 10)];
        let expected = expected.map(|(wnid, number)| format!("train/{wnid}/images/{wnid}_{number}.JPEG"));
        assert_eq!(files(&*source), expected, "{}", path.display());
        for (index, sample) in source.samples().iter().enumerate() {
            assert_eq!(sample.leaf, u32::from(index >= 3));
            let image = source.image(index).unwrap();
            assert_eq!((image.width(), image.height()), (16, 16));
            let red = [101, 102, 110, 201, 202, 210][index];
            assert!(image.pixels()[image.pixels().len() - 3].abs_diff(red) <= 4);
        }
        let error = source.image(6).unwrap_err().to_string();
        assert!(error.contains("there is no sample 6; this source has 6"), "{error}");
        assert!(source.embedding(0, &mut [0.0]).is_err());
    }
}

#[test]
fn an_incomplete_tiny_imagenet_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = made::tiny_imagenet();
    content.retain(|(name, _)| !name.contains("train/n02/images"));
    let error = error(SourceKind::TinyImagenet, &made::directory(folder.path(), &content));
    assert!(error.contains("class n02 is listed in wnids.txt but train/n02/images has no images"), "{error}");
}

#[test]
fn the_last_folder_is_the_class() {
    let folder = tempfile::tempdir().unwrap();
    let image = made::png([1, 2, 3]);
    let names =
        ["birds/crane/10.png", "birds/crane/9.PNG", "birds/duck/a.gif.png", "fish/tench/1.png", "top.png"];
    let mut content: made::Files = names.iter().map(|name| ((*name).to_owned(), image.clone())).collect();
    content.push(("birds/crane/notes.txt".into(), b"x".to_vec()));
    content.push(("birds/crane/.hidden.png".into(), image));
    let source = open(SourceKind::ImageFolder, &made::directory(folder.path(), &content));
    assert_eq!(ids(&*source), ["crane", "duck", "tench"]);
    assert_eq!(
        files(&*source),
        ["birds/crane/9.PNG", "birds/crane/10.png", "birds/duck/a.gif.png", "fish/tench/1.png"]
    );
    assert_eq!(source.image(0).unwrap().pixels()[765..], [1, 2, 3]);

    let empty = tempfile::tempdir().unwrap();
    let error = error(SourceKind::ImageFolder, empty.path());
    assert!(error.contains("no images found; imagefolder expects one folder of images per class"), "{error}");
}

#[test]
fn broken_images_are_reported_by_name_and_leave_the_others_readable() {
    let folder = tempfile::tempdir().unwrap();
    let content =
        vec![("a/1.png".to_owned(), b"no png".to_vec()), ("a/2.png".to_owned(), made::png([5, 5, 5]))];
    let source = open(SourceKind::ImageFolder, &made::directory(folder.path(), &content));
    let error = source.image(0).unwrap_err();
    assert!(matches!(&error, gpn_data::DataError::BrokenImage { file, .. } if file == "a/1.png"), "{error}");
    assert!(source.image(1).is_ok());
}

#[test]
fn a_zip_entry_that_differs_from_its_crc_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zip");
    // The last bytes of a PNG are none that its decoder looks at: only the archive can tell.
    let padded = [made::png([5, 5, 5]), b"padding".to_vec()].concat();
    let files = ["a/1.png", "a/2.png", "a/3.png"].map(|name| (name.to_owned(), padded.clone()));
    let mut zip = made::zip(&files.to_vec());
    let at = zip.windows(7).position(|bytes| bytes == b"padding").unwrap();
    zip[at] ^= 1;
    let crc = zip.windows(7).rposition(|bytes| bytes == b"a/2.png").unwrap() - 46 + 16;
    zip[crc] ^= 1;
    fs::write(&path, zip).unwrap();
    let source = open(SourceKind::ImageFolder, &path);
    for (index, file) in ["a/1.png", "a/2.png"].iter().enumerate() {
        let error = source.image(index).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{file}: broken image: its CRC-32 is ")), "{error}");
    }
    assert!(source.image(2).is_ok());

    let arrays = vec![
        ("x.npy".to_owned(), made::npy("<f4", "(1, 2)", &made::floats(&[1.0, 2.0]))),
        ("y.npy".to_owned(), made::npy("<i8", "(1,)", &[1, 0, 0, 0, 0, 0, 0, 0])),
    ];
    let mut npz = made::zip(&arrays);
    let value = npz.windows(4).position(|bytes| bytes == 2.0_f32.to_le_bytes()).unwrap();
    npz[value] ^= 1;
    let path = folder.path().join("x.npz");
    fs::write(&path, npz).unwrap();
    let error = error(SourceKind::Embeddings, &path);
    assert!(error.contains("x.npz: x.npy: its CRC-32 is "), "{error}");
}

#[test]
fn cifar100_brings_its_taxonomy() {
    let folder = tempfile::tempdir().unwrap();
    let content = made::cifar100();
    let directory = made::directory(&folder.path().join("plain"), &content);
    let archive = folder.path().join("cifar-100-binary.tar.gz");
    fs::write(&archive, made::gzip(&made::tar(&content))).unwrap();
    for path in [directory.join("cifar-100-binary"), directory, archive] {
        let source = open(SourceKind::Cifar100, &path);
        assert_eq!(ids(&*source), ["apple", "bear", "cup"]);
        assert_eq!(source.samples().len(), 9);
        assert_eq!(source.samples()[7].file, "test.bin[1]");
        let image = source.image(7).unwrap();
        assert_eq!((image.width(), &image.pixels()[..6]), (32, &[10, 20, 30, 10, 20, 30][..]));
        let taxonomy = source.taxonomy().unwrap().unwrap().taxonomy;
        for (child, parent) in [("apple", "things"), ("bear", "animals"), ("cup", "things")] {
            let [child, parent] = [child, parent].map(|id| taxonomy.find(id).unwrap());
            assert_eq!(taxonomy.parents(child), [parent]);
        }
        assert!(source.image(9).is_err());
    }
}

#[test]
fn tiered_imagenet_is_read_from_its_pickles() {
    let folder = tempfile::tempdir().unwrap();
    let source = open(SourceKind::TieredImagenet, &made::directory(folder.path(), &made::tiered_imagenet()));
    assert_eq!(ids(&*source), ["n01440764", "n02012849", "n07930864"]);
    assert_eq!(source.leaves()[1].name.as_deref(), Some("crane"));
    assert_eq!(
        files(&*source),
        ["train_images_png.pkl[0]", "train_images_png.pkl[1]", "test_images_png.pkl[0]"]
    );
    let leaves: Vec<u32> = source.samples().iter().map(|sample| sample.leaf).collect();
    assert_eq!(leaves, [0, 1, 2]);
    for (index, colour) in [[200, 10, 20], [10, 200, 20], [10, 20, 200]].iter().enumerate() {
        assert_eq!(source.image(index).unwrap().pixels()[765..], *colour);
    }
}

#[test]
fn tiered_imagenet_is_read_from_unpacked_images_with_blue_first() {
    let folder = tempfile::tempdir().unwrap();
    let array = made::npy("|u1", "(2, 1, 2, 3)", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let content = vec![
        ("val_images.npz".into(), made::zip(&vec![("images.npy".to_owned(), array)])),
        ("val_labels.pkl".into(), made::pickled_labels(&[1, 0], &["a", "b"])),
    ];
    let source = open(SourceKind::TieredImagenet, &made::directory(folder.path(), &content));
    assert_eq!(ids(&*source), ["a", "b"]);
    assert_eq!(source.samples()[0].leaf, 1);
    let image = source.image(1).unwrap();
    assert_eq!((image.width(), image.height()), (2, 1));
    assert_eq!(image.pixels(), [9, 8, 7, 12, 11, 10]);
}

#[test]
fn labels_must_match_the_images() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = made::tiered_imagenet();
    content[1].1 = made::pickled_labels(&[0], &["crane"]);
    let path = made::directory(folder.path(), &content);
    let error = error(SourceKind::TieredImagenet, &path);
    assert!(error.contains("train_labels.pkl: has 1 labels, but there are 2 images"), "{error}");
}

#[test]
fn leaf_lists_have_no_samples() {
    let folder = tempfile::tempdir().unwrap();
    let content = vec![
        ("leaves_train.csv".to_owned(), b"wnid,super\r\nn3,x\r\nn1,x\r\n".to_vec()),
        ("leaves_test.csv".to_owned(), b"\xef\xbb\xbfn20,y\n".to_vec()),
    ];
    let path = made::directory(folder.path(), &content);
    let source = open(SourceKind::Leaves, &path);
    assert_eq!(ids(&*source), ["n1", "n3", "n20"]);
    assert!(source.samples().is_empty());
    assert!(source.image(0).is_err());
    assert_eq!(ids(&*open(SourceKind::Leaves, &path.join("leaves_train.csv"))), ["n1", "n3"]);
    fs::write(path.join("leaves_val.csv"), "n1\n").unwrap();
    assert!(error(SourceKind::Leaves, &path).contains("the class n1 is listed twice"));
}

/// Every embedding of a source, with the id of its class.
fn rows(source: &dyn Source) -> Vec<(Vec<f32>, String)> {
    let SampleKind::Embeddings { dim } = source.kind() else { panic!("not embeddings") };
    let row = |(index, sample): (usize, &gpn_data::SampleInfo)| {
        let mut out = vec![0.0; dim];
        source.embedding(index, &mut out).unwrap();
        (out, source.leaves()[sample.leaf as usize].id.clone())
    };
    source.samples().iter().enumerate().map(row).collect()
}

#[test]
fn embeddings_are_read_from_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<(Vec<f32>, String)> =
        vec![(vec![1.0, 2.0], "b".into()), (vec![3.0, 4.0], "a".into()), (vec![5.0, 6.5], "b".into())];
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.5];
    let single = made::npy("<f4", "(3, 2)", &made::floats(&values));
    let double = made::npy(">f8", "(3, 2)", &values.map(|v| f64::from(v).to_be_bytes()).concat());
    let half = made::npy("<f2", "(3, 2)", &values.map(|v| half::f16::from_f32(v).to_le_bytes()).concat());
    let text_labels = made::npy("<U3", "(3,)", &made::unicode(&["b", "a", "b"], 3));
    let table: Vec<(Vec<f32>, &str)> =
        expected.iter().map(|(row, name)| (row.clone(), name.as_str())).collect();
    let zipped = |names: [&str; 2]| {
        let arrays = [&single, &text_labels];
        made::zip(
            &names.iter().zip(arrays).map(|(name, array)| (format!("{name}.npy"), array.clone())).collect(),
        )
    };
    let content = vec![
        ("a/x.npy".to_owned(), single.clone()),
        ("a/x_labels.npy".to_owned(), text_labels.clone()),
        ("b/bird_embeddings.npy".to_owned(), double),
        ("b/bird_labels.csv".to_owned(), b"class_name\r\nb\r\n\"a\"\r\nb\r\n".to_vec()),
        ("c/x.npy".to_owned(), half),
        ("c/labels.txt".to_owned(), b"b\na\nb".to_vec()),
        ("d/x.npz".to_owned(), zipped(["features", "labels"])),
        ("e/x.npz".to_owned(), zipped(["x", "y"])),
        ("f/x.parquet".to_owned(), made::parquet(&table)),
    ];
    let root = made::directory(folder.path(), &content);
    for file in ["a/x.npy", "b/bird_embeddings.npy", "c/x.npy", "d/x.npz", "e/x.npz", "f/x.parquet"] {
        let source = open(SourceKind::Embeddings, &root.join(file));
        assert_eq!(ids(&*source), ["a", "b"], "{file}");
        assert_eq!(rows(&*source), expected, "{file}");
        assert!(source.embedding(0, &mut [0.0; 3]).is_err());
        assert!(source.image(0).is_err());
        let bare = gpn_data::source::read_embeddings(&root.join(file)).unwrap();
        assert_eq!((bare.dim, &bare.values[..]), (2, &values[..]), "{file}");
    }
    let one = root.join("one.npy");
    fs::write(&one, made::npy("<f4", "(2,)", &made::floats(&[3.0, 4.0]))).unwrap();
    let bare = gpn_data::source::read_embeddings(&one).unwrap();
    assert_eq!((bare.dim, &bare.values[..]), (2, &[3.0, 4.0][..]));
    assert!(gpn_data::source::read_embeddings(&root.join("a/x_labels.npy")).is_err());
}

#[test]
fn values_that_are_not_finite_name_row_and_class() {
    let folder = tempfile::tempdir().unwrap();
    for bad in [f32::NAN, f32::INFINITY] {
        let content = vec![
            ("x.npy".to_owned(), made::npy("<f4", "(2, 2)", &made::floats(&[1.0, 2.0, 3.0, bad]))),
            ("x_labels.npy".to_owned(), made::npy("<i8", "(2,)", &[7i64, 40].map(i64::to_le_bytes).concat())),
        ];
        let source = open(SourceKind::Embeddings, &made::directory(folder.path(), &content).join("x.npy"));
        assert_eq!(ids(&*source), ["7", "40"]);
        assert!(source.embedding(0, &mut [0.0; 2]).is_ok());
        let error = source.embedding(1, &mut [0.0; 2]).unwrap_err().to_string();
        assert!(error.contains("x.npy: row 1 (class 40), column 1 is "), "{error}");
    }
}

#[test]
fn ragged_embeddings_name_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    fs::write(&path, made::parquet(&[(vec![1.0, 2.0], "a"), (vec![1.0], "b"), (vec![1.0, 2.0], "c")]))
        .unwrap();
    let error = error(SourceKind::Embeddings, &path);
    assert!(error.contains("row 1: the embedding has 1 numbers, the first row 2"), "{error}");
}
