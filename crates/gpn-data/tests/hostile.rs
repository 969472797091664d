//! Damaged and hostile files: each one ends in an error that names it, quickly, with little memory, without a
//! panic. The corpus is made by damaging small valid files.

mod made;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use gpn_data::{SampleKind, SourceKind, SourceSpec};

/// Counts the bytes in use, to notice files that make the reader take absurd memory.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(IN_USE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MAX_MEMORY: usize = 160 << 20;
const MAX_TIME: Duration = Duration::from_secs(5);

/// What must come of a file.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// An error.
    Error,
    /// An error or data: the damage may have hit bytes that do not matter.
    Any,
}

/// One data set, one of whose files is damaged.
struct Case {
    what: String,
    kind: SourceKind,
    /// What to open, relative to the folder of the case.
    open: &'static str,
    /// What any error must mention.
    mentions: &'static str,
    files: made::Files,
    outcome: Outcome,
}

/// Opens the source and reads all of it; the error, if any.
fn read_all(kind: SourceKind, path: &Path) -> Result<(), String> {
    let source = gpn_data::open(&SourceSpec { kind, path: path.to_owned() }).map_err(|e| e.to_string())?;
    for index in 0..source.samples().len() {
        match source.kind() {
            SampleKind::Images => drop(source.image(index).map_err(|e| e.to_string())?),
            SampleKind::Embeddings { dim } => {
                source.embedding(index, &mut vec![0.0; dim]).map_err(|e| e.to_string())?;
            }
        }
    }
    Ok(())
}

/// Damage that any file may suffer: cut short at many places, bytes flipped, zeros and noise written over it.
fn damage(bytes: &[u8]) -> Vec<(String, Vec<u8>, bool)> {
    let mut all = Vec::new();
    let length = bytes.len();
    for part in 0..12 {
        let kept = (length * part / 12) | 1;
        all.push((format!("cut to {kept} of {length} bytes"), bytes[..kept].to_vec(), true));
    }
    let mut state = 0x9e37_79b9_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize
    };
    for round in 0..24 {
        let mut copy = bytes.to_vec();
        for _ in 0..=round / 4 {
            let at = random() % length;
            copy[at] = [copy[at] ^ (1 << (random() % 8)), 0xff, 0x7f, 0][random() % 4];
        }
        all.push((format!("bytes changed, round {round}"), copy, false));
    }
    for (from, fill) in [(0, 0xff), (0, 0), (length / 3, 0xff), (length / 2, 0)] {
        let mut copy = bytes.to_vec();
        let to = (from + 64).min(length);
        copy[from..to].fill(fill);
        all.push((format!("bytes {from}..{to} are {fill:#04x}"), copy, false));
    }
    all
}

/// Cases made by damaging the file `at` of a valid data set.
fn damaged(
    kind: SourceKind,
    open: &'static str,
    mentions: &'static str,
    files: &made::Files,
    at: usize,
) -> Vec<Case> {
    let case = |(what, bytes, cut): (String, Vec<u8>, bool)| {
        let mut files = files.clone();
        let what = format!("{}: {what}", files[at].0);
        files[at].1 = bytes;
        Case { what, kind, open, mentions, files, outcome: if cut { Outcome::Error } else { Outcome::Any } }
    };
    damage(&files[at].1).into_iter().map(case).collect()
}

fn check(cases: Vec<Case>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let (count, mut failures) = (cases.len(), Vec::new());
    for (index, case) in cases.into_iter().enumerate() {
        let root = made::directory(&folder.path().join(index.to_string()), &case.files);
        let path = root.join(case.open);
        PEAK.store(IN_USE.load(Relaxed), Relaxed);
        let (before, start) = (IN_USE.load(Relaxed), Instant::now());
        let result = read_all(case.kind, &path);
        let (took, peak) = (start.elapsed(), PEAK.load(Relaxed).saturating_sub(before));
        let mut fail = |reason: String| failures.push(format!("{}: {reason}", case.what));
        if took > MAX_TIME || peak > MAX_MEMORY {
            fail(format!("took {took:?} and {peak} bytes of memory"));
        }
        match result {
            Ok(()) if case.outcome == Outcome::Error => fail("no error".into()),
            Err(error) if !error.contains(case.mentions) => fail(format!("the error names no file: {error}")),
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    count
}

/// All checks run in one test, so that the memory counted is that of one case.
#[test]
fn hostile_files_end_in_clear_errors() {
    let mut count = 0;
    count += check(damaged_files());
    count += check(absurd_files());
    assert!(count >= 150, "only {count} cases");
    eprintln!("{count} damaged or hostile files");
}

fn one(name: &str, bytes: Vec<u8>) -> made::Files {
    vec![(name.to_owned(), bytes)]
}

fn damaged_files() -> Vec<Case> {
    let mut cases = Vec::new();
    let tiny = made::tiny_imagenet();
    for (name, bytes) in
        [("x.tar", made::tar(&tiny)), ("x.zip", made::zip(&tiny)), ("x.tgz", made::gzip(&made::tar(&tiny)))]
    {
        // Errors name the archive, or the image inside it.
        let mut made = damaged(SourceKind::TinyImagenet, name, "x.", &one(name, bytes), 0);
        made.iter_mut().filter(|case| case.outcome == Outcome::Any).for_each(|case| case.mentions = "");
        cases.extend(made);
    }
    for (name, bytes) in [
        ("a/1.jpg", made::jpeg([200, 10, 10])),
        ("a/1.png", made::png([200, 10, 10])),
        ("a/1.webp", made::webp([200, 10, 10])),
        ("a/1.bmp", made::bmp([200, 10, 10])),
        ("a/1.gif", made::gif([200, 10, 10])),
    ] {
        cases.extend(damaged(SourceKind::ImageFolder, "", "a/1.", &one(name, bytes), 0));
    }
    let cifar = made::cifar100();
    cases.extend(damaged(SourceKind::Cifar100, "", "train.bin", &cifar, 0));
    let tiered = made::tiered_imagenet();
    cases.extend(damaged(SourceKind::TieredImagenet, "", "train_", &tiered, 0));
    // A label that is another name by now is missed in the list of names.
    cases.extend(damaged(SourceKind::TieredImagenet, "", "s.", &tiered, 1));
    let values = made::npy("<f4", "(3, 2)", &made::floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let labels = made::npy("<U1", "(3,)", &made::unicode(&["a", "b", "a"], 1));
    let arrays = vec![("x.npy".to_owned(), values.clone()), ("y.npy".to_owned(), labels.clone())];
    let beside = vec![("x.npy".to_owned(), values), ("x_labels.npy".to_owned(), labels)];
    for at in [0, 1] {
        cases.extend(damaged(SourceKind::Embeddings, "x.npy", "x", &beside, at));
    }
    cases.extend(damaged(SourceKind::Embeddings, "x.npz", "x.npz", &one("x.npz", made::zip(&arrays)), 0));
    let table = made::parquet(&[(vec![1.0, 2.0], "a"), (vec![3.0, 4.0], "b")]);
    cases.extend(damaged(SourceKind::Embeddings, "x.parquet", "x.parquet", &one("x.parquet", table), 0));
    cases
}

/// Files that lie about sizes, names and functions.
fn absurd_files() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |what: &str, kind, open: &'static str, mentions: &'static str, files: made::Files| {
        cases.push(Case { what: what.to_owned(), kind, open, mentions, files, outcome: Outcome::Error });
    };
    let labels = || ("x_labels.npy".to_owned(), made::npy("<i8", "(2,)", &[0; 16]));
    for (descr, shape) in [
        ("<f4", "(1000000000, 1000000000)"),
        ("<f4", "(18446744073709551615, 2)"),
        ("<f4", "(99999999999999999999999, 2)"),
        ("<f4", "(2, 1000000)"),
        ("<f4", "(-2, 2)"),
        ("<f4", "(0, 18446744073709551615)"),
        ("<f4", "(2,)"),
        ("<f4", "()"),
        ("<f4", "(2, 2"),
        ("<c8", "(1, 2)"),
        ("|O", "(1, 2)"),
        ("<i4", "(2, 2)"),
        ("<U4294967295", "(2, 2)"),
        ("", "(2, 2)"),
    ] {
        let files = vec![("x.npy".to_owned(), made::npy(descr, shape, &[0; 16])), labels()];
        add(&format!("npy {descr} {shape}"), SourceKind::Embeddings, "x.npy", "x.npy", files);
    }
    let mut long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
    long.extend([b' '; 100]);
    add(
        "npy header of 4 GB",
        SourceKind::Embeddings,
        "x.npy",
        "x.npy",
        vec![("x.npy".into(), long), labels()],
    );
    for bad in [f32::NAN, f32::NEG_INFINITY] {
        let array = made::npy("<f4", "(2, 2)", &made::floats(&[1.0, 2.0, bad, 4.0]));
        add(
            "not finite",
            SourceKind::Embeddings,
            "x.npy",
            "row 1 (class 0)",
            vec![("x.npy".into(), array), labels()],
        );
    }

    // Bombs: entries that inflate to far more than their size, or than their header says.
    let zeros = vec![0; 64 << 20];
    let bomb = made::deflate(&zeros);
    let npz = |size: u32| made::raw_zip(&[(b"x.npy", size, &bomb, 8), (b"y.npy", 4, b"abcd", 0)]);
    for size in [100, 64 << 20, u32::MAX - 1] {
        let files = one("x.npz", npz(size));
        add(&format!("npz bomb claiming {size}"), SourceKind::Embeddings, "x.npz", "x.npz: x.npy", files);
    }
    let zip = made::raw_zip(&[(b"a/1.jpg", 5000, &bomb, 8)]);
    add("zip bomb", SourceKind::ImageFolder, "x.zip", "a/1.jpg: broken image: ", one("x.zip", zip));
    let gz = made::gzip(&zeros);
    add("gzip bomb", SourceKind::ImageFolder, "x.tgz", "x.tgz", one("x.tgz", gz));
    let mut count = made::raw_zip(&[(b"a/1.jpg", 4, b"abcd", 0)]);
    let end = count.len() - 12;
    count[end..end + 2].copy_from_slice(&[0xfe, 0xff]);
    add("zip of 65534 entries", SourceKind::ImageFolder, "x.zip", "x.zip", one("x.zip", count));

    // Names.
    for name in
        [&b"../../etc/a/1.jpg"[..], b"/etc/a/1.jpg", b"a/..\\..\\1.jpg", b"a/\xff\xfe.jpg", b"a/\0.jpg"]
    {
        let zip = made::raw_zip(&[(name, 4, b"abcd", 0)]);
        let shown = String::from_utf8_lossy(name);
        add(&format!("zip entry {shown:?}"), SourceKind::ImageFolder, "x.zip", "x.zip", one("x.zip", zip));
    }
    for name in [&b"../a/1.jpg"[..], b"a/\xff.jpg"] {
        let mut tar = made::tar(&one("a/placeholder.jpg", made::jpeg([1, 2, 3])));
        tar[..100].fill(0);
        tar[..name.len()].copy_from_slice(name);
        set_tar_checksum(&mut tar);
        add("tar entry name", SourceKind::ImageFolder, "x.tar", "x.tar", one("x.tar", tar));
    }
    let mut tar = made::tar(&one("a/1.jpg", made::jpeg([1, 2, 3])));
    tar[124..136].copy_from_slice(b"77777777777\0");
    set_tar_checksum(&mut tar);
    add("tar entry of 8 GB", SourceKind::ImageFolder, "x.tar", "x.tar", one("x.tar", tar));
    add("empty file", SourceKind::TinyImagenet, "x.tar", "x.tar", one("x.tar", Vec::new()));
    add("no archive", SourceKind::TinyImagenet, "x.tar", "x.tar", one("x.tar", vec![b'x'; 4096]));
    add("missing", SourceKind::TinyImagenet, "absent.tar", "absent.tar", Vec::new());

    // Pictures of absurd size.
    let mut png = made::png([1, 2, 3]);
    for size in [[0x7f, 0xff, 0xff, 0xff], [0, 0, 0x26, 0], [0, 0, 0, 0]] {
        png[16..20].copy_from_slice(&size);
        png[20..24].copy_from_slice(&size);
        let crc = crc32(&png[12..29]);
        png[29..33].copy_from_slice(&crc.to_be_bytes());
        add(
            &format!("png of size {size:?}"),
            SourceKind::ImageFolder,
            "",
            "a/1.png",
            one("a/1.png", png.clone()),
        );
    }
    let mut bmp = made::bmp([1, 2, 3]);
    bmp[18..26].copy_from_slice(&[0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]);
    add("bmp of absurd size", SourceKind::ImageFolder, "", "a/1.bmp", one("a/1.bmp", bmp));
    let mut gif = made::gif([1, 2, 3]);
    gif[6..10].copy_from_slice(&[0xff; 4]);
    add("gif of absurd size", SourceKind::ImageFolder, "", "a/1.gif", one("a/1.gif", gif));

    // Pickles.
    for (what, pickle, mentions) in [
        (
            "os.system",
            &b"cos\nsystem\n(S'true'\ntR."[..],
            "train_labels.pkl: pickle refused at byte 0: `os.system`",
        ),
        ("eval", b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.", "`builtins.eval`"),
        ("exec", b"c__builtin__\nexec\n(S'1'\ntR.", "`__builtin__.exec`"),
        ("subprocess", b"csubprocess\nPopen\n(S'1'\ntR.", "`subprocess.Popen`"),
        ("inside a list", b"](K\x01cos\nsystem\ne.", "`os.system`"),
        ("numpy.load", b"cnumpy\nload\n.", "`numpy.load`"),
        ("instance", b"(ios\nsystem\n.", "INST"),
        ("new object", b"cnumpy\nndarray\n)\x81.", "NEWOBJ"),
        ("long of 2 GB", b"\x8b\xff\xff\xff\x7f", "train_labels.pkl"),
        ("bytes of 4 GB", b"B\xff\xff\xff\xff", "train_labels.pkl"),
        ("bytes of 16 EB", b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff", "train_labels.pkl"),
        ("memo of 4 billion", b"Nr\xff\xff\xff\xff.", "train_labels.pkl"),
        ("no dict", b"N.", "label_specific"),
        ("dict without labels", b"}.", "label_specific"),
        (
            "labels that are text",
            b"}(U\x0elabel_specificU\x01xU\x12label_specific_strNu.",
            "train_labels.pkl",
        ),
    ] {
        let mut files = made::tiered_imagenet();
        files[1].1 = pickle.to_vec();
        add(what, SourceKind::TieredImagenet, "", mentions, files);
    }
    let nested = |opening: &[u8]| opening.repeat(300_000);
    for (what, pickle) in
        [("marks", nested(b"(")), ("lists", nested(b"]")), ("dicts", nested(b"}")), ("dups", nested(b"N2"))]
    {
        let mut files = made::tiered_imagenet();
        files[0].1 = pickle;
        add(&format!("deep {what}"), SourceKind::TieredImagenet, "", "train_images_png.pkl", files);
    }
    let mut files = made::tiered_imagenet();
    files[1].1 = made::pickled_labels(&[0, 9], &["crane"]);
    add("label without name", SourceKind::TieredImagenet, "", "image 1 has class 9", files);
    let mut files = made::tiered_imagenet();
    files[4].1 = b"crane\n".to_vec();
    add("names without synsets", SourceKind::TieredImagenet, "", "class_names.txt", files);

    let mut files = made::cifar100();
    files[0].1[1] = 200;
    add("cifar label", SourceKind::Cifar100, "", "train.bin: record 0: label 200", files);
    let mut files = made::cifar100();
    files.retain(|(name, _)| !name.contains("fine"));
    add("cifar without names", SourceKind::Cifar100, "", "fine_label_names.txt is missing", files);
    cases
}

fn set_tar_checksum(tar: &mut [u8]) {
    tar[148..156].fill(b' ');
    let sum: u32 = tar[..512].iter().map(|&byte| u32::from(byte)).sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
