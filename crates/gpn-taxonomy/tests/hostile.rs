//! Files that are broken, huge in one dimension, or made to hurt: the result is a graph or an error that names
//! the file, soon, and never a panic.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use gpn_taxonomy::{Checked, TaxonomyError, TaxonomySpec, leaf_counts, levels, read};

const EDGES: &str =
    "child,parent\nmammal,animal\n\"cat, the\",mammal\ndog,mammal\ndog,pet\npet,animal\nalone,\n";
const WORDS: &str = "# parent child\nanimal mammal\nmammal cat\nmammal dog\npet dog\nanimal pet\n";
const WORDNET: &str = "  1 This software and database\n\
    00001740 03 n 01 entity 0 002 ~ 00001930 n 0000 ~ 00002137 n 0000 | that which is perceived\n\
    00001930 03 n 02 physical_entity 0 thing 1 002 @ 00001740 n 0000 + 00692347 v 0101 | an entity\n\
    00002137 03 n 01 abstraction 0 001 @ 00001740 n 0000 | a general concept\n\
    00002452 03 n 0a thing 0 a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8 i 9 001 @i 00001930 n 0000 | a separate entity\n";
const XML: &str = "<?xml version=\"1.0\"?>\n<ImageNetStructure>\n<synset wnid=\"fall11\" words=\"all\" gloss=\"a &lt; b\">\n\
    <synset wnid=\"n1\" words=\"animal, beast\"><synset wnid=\"n3\"/></synset>\n\
    <synset wnid=\"n2\"><synset wnid=\"n3\"></synset></synset>\n</synset></ImageNetStructure>\n";
const NESTED: &str =
    "{\"id\": \"animal\",\n \"children\": [{\"id\": \"cat\", \"name\": \"Cat\\u00e9\"},\n\"dog\"]}\n";
const FLAT: &str = "{\"classes\": [\n{\"id\": \"cat\", \"parents\": [\"animal\"]},\n{\"id\": \"animal\", \"gloss\": \"x\"}\n]}\n";
const OBO: &str = "format-version: 1.2\n\n[Term]\nid: X:1\nname: thing\ndef: \"Any thing.\" [a:b]\n\n\
    [Term]\nid: X:2\nis_a: X:1 ! thing\n\n[Term]\nid: X:3\nis_obsolete: true\n\n[Typedef]\nid: part_of\n";

const VALID: [(&str, &str); 7] = [
    ("edges", EDGES),
    ("edges", WORDS),
    ("wordnet", WORDNET),
    ("imagenet-xml", XML),
    ("json", NESTED),
    ("json", FLAT),
    ("obo", OBO),
];

/// Generous, since machines that run tests are busy; a quadratic reader would still need minutes.
const SOON: Duration = Duration::from_secs(30);

fn read_bytes(kind: &str, bytes: &[u8], path: &Path) -> Result<Checked, TaxonomyError> {
    std::fs::write(path, bytes).unwrap();
    read(&format!("{kind}:{}", path.display()).parse::<TaxonomySpec>().unwrap())
}

/// A graph or an error that names the file, soon; true for a graph.
fn survives(kind: &str, bytes: &[u8], path: &Path) -> bool {
    let start = Instant::now();
    let result = read_bytes(kind, bytes, path);
    assert!(start.elapsed() < SOON, "{kind} took {:?}", start.elapsed());
    match result {
        Ok(checked) => {
            assert!(!checked.taxonomy.is_empty());
            true
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains(&path.display().to_string()), "the file is not named: {message}");
            assert!(message.len() < 2000, "a message of {} bytes", message.len());
            false
        }
    }
}

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

#[test]
fn mutated_files_end_in_a_graph_or_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(7);
    let (mut files, mut graphs) = (0, 0);
    for (kind, text) in VALID {
        let valid = folder.path().join(format!("valid-{files}"));
        assert!(survives(kind, text.as_bytes(), &valid), "{kind}: the valid file is read");
        let bytes = text.as_bytes();
        let mut mutations: Vec<Vec<u8>> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
        for _ in 0..300 {
            let mut flipped = bytes.to_vec();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(flipped.len());
                flipped[at] = match numbers.below(3) {
                    0 => flipped[at] ^ (1 << numbers.below(8)),
                    1 => numbers.below(256) as u8,
                    _ => b"\"\n\r\t,:;#<>[]{}\\@|&0 "[numbers.below(20)],
                };
            }
            mutations.push(flipped);
        }
        for _ in 0..40 {
            let (from, to) = (numbers.below(bytes.len()), numbers.below(bytes.len()));
            let (from, to) = (from.min(to), from.max(to));
            mutations.push([&bytes[..to], &bytes[from..]].concat());
            mutations.push([&bytes[..from], &bytes[to..]].concat());
        }
        for huge in [b'a', b'"', b' ', b'9', b'<', b'[', b'{', b'\n', b'\0', 0xFF] {
            let at = numbers.below(bytes.len());
            mutations.push([&bytes[..at], &vec![huge; 300_000], &bytes[at..]].concat());
        }
        mutations.push([b"\xEF\xBB\xBF", bytes].concat());
        mutations.push(text.replace('\n', "\r\n").into_bytes());
        mutations.push(text.replace('\n', "\r").into_bytes());
        mutations.push(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
        for mutated in mutations {
            files += 1;
            // A new file each time: some file systems flush one that is overwritten.
            let path = folder.path().join(format!("mutated-{files}"));
            graphs += u32::from(survives(kind, &mutated, &path));
        }
    }
    eprintln!("{files} mutated files, of which {graphs} are still a graph");
    assert!(files > 200);
}

#[test]
fn byte_order_marks_and_line_ends_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (kind, text) in VALID {
        let plain = read_bytes(kind, text.as_bytes(), &path).unwrap().taxonomy;
        let bom = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
        for other in [bom, text.replace('\n', "\r\n").into_bytes()] {
            let graph = read_bytes(kind, &other, &path).unwrap().taxonomy;
            assert!(plain.edges().eq(graph.edges()), "{kind}");
            assert!(plain.nodes().all(|n| plain.id(n) == graph.id(n)), "{kind}");
        }
    }
}

#[test]
fn a_chain_a_million_deep_is_read_or_refused() {
    const DEEP: usize = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep");
    let mut edges = String::from("child,parent\n");
    for n in 1..DEEP {
        writeln!(edges, "c{n},c{}", n - 1).unwrap();
    }
    let graph = read_bytes("edges", edges.as_bytes(), &path).unwrap().taxonomy;
    assert_eq!(levels(&graph).longest.iter().max(), Some(&(DEEP as u32 - 1)));
    assert_eq!(leaf_counts(&graph)[0], 1);

    writeln!(edges, "c0,c{}", DEEP - 1).unwrap();
    let message = read_bytes("edges", edges.as_bytes(), &path).unwrap_err().to_string();
    assert!(
        message.contains("cycle") && message.contains("999988 more") && message.len() < 1000,
        "{message}"
    );

    let mut xml = String::new();
    for n in 0..DEEP {
        write!(xml, "<synset wnid=\"c{n}\">").unwrap();
    }
    assert!(!survives("imagenet-xml", xml.as_bytes(), &path));
    xml.push_str(&"</synset>".repeat(DEEP));
    assert_eq!(read_bytes("imagenet-xml", xml.as_bytes(), &path).unwrap().taxonomy.edge_count(), DEEP - 1);

    assert!(!survives("json", "{\"children\":[".repeat(DEEP).as_bytes(), &path));
    assert!(!survives("json", "[".repeat(DEEP).as_bytes(), &path));
}

#[test]
fn wide_files_take_no_longer_than_long_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide");
    let mut attributes = String::new();
    for n in 0..100_000 {
        write!(attributes, " a{n}=\"x\"").unwrap();
    }
    survives("imagenet-xml", format!("<synset wnid=\"a\"{attributes}/>").as_bytes(), &path);
    survives("edges", format!("a,b{}\n", ",c".repeat(1_000_000)).as_bytes(), &path);
    survives("edges", "\"a\"\"".repeat(500_000).as_bytes(), &path);
    survives("edges", "a,b\n".repeat(300_000).as_bytes(), &path);
    survives("obo", format!("[Term]\nid: a\n{}", "is_a: a\n".repeat(300_000)).as_bytes(), &path);
    survives(
        "wordnet",
        format!("00000001 03 n 01 a 0 999{} | x\n", " @ 00000001 n 0000".repeat(999)).as_bytes(),
        &path,
    );
    survives("json", format!("{{\"a\": [{}\"b\"]}}", "\"b\",".repeat(300_000)).as_bytes(), &path);
}

#[test]
fn cycles_and_self_loops_are_refused_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cyclic");
    for (kind, cycle, own_parent) in [
        ("edges", "a,b\nb,a\n", "a,a\n"),
        (
            "wordnet",
            "00000001 03 n 01 a 0 001 @ 00000002 n 0000 | x\n00000002 03 n 01 b 0 001 @ 00000001 n 0000 | y\n",
            "00000001 03 n 01 a 0 001 @ 00000001 n 0000 | x\n",
        ),
        (
            "imagenet-xml",
            "<synset wnid='a'><synset wnid='b'><synset wnid='a'/></synset></synset>",
            "<synset wnid='a'><synset wnid='a'/></synset>",
        ),
        ("json", "{\"a\": [\"b\"], \"b\": [\"a\"]}", "{\"a\": [\"a\"]}"),
        ("obo", "[Term]\nid: a\nis_a: b\n[Term]\nid: b\nis_a: a\n", "[Term]\nid: a\nis_a: a\n"),
    ] {
        let error = read_bytes(kind, cycle.as_bytes(), &path).unwrap_err();
        assert!(matches!(error, TaxonomyError::Cycle { .. }), "{kind}: {error}");
        assert!(error.to_string().contains(" -> "), "{error}");
        let error = read_bytes(kind, own_parent.as_bytes(), &path).unwrap_err();
        assert!(matches!(error, TaxonomyError::SelfLoop { .. }), "{kind}: {error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    for kind in ["edges", "wordnet", "imagenet-xml", "json", "obo"] {
        let spec: TaxonomySpec = format!("{kind}:no/such/file").parse().unwrap();
        assert!(read(&spec).unwrap_err().to_string().starts_with("no/such/file: cannot read: "));
    }
}
