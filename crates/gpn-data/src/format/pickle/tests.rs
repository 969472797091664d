use super::*;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/pickles/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn error(bytes: &[u8]) -> String {
    Pickle::parse(bytes, "x.pkl").unwrap_err().to_string()
}

#[test]
fn labels_of_every_protocol_are_read() {
    for protocol in 0..6 {
        let bytes = fixture(&format!("labels_{protocol}.pkl"));
        let pickle = Pickle::parse(&bytes, "labels.pkl").unwrap();
        let value = |key| pickle.get(pickle.root(), key).unwrap();
        assert_eq!(pickle.integers(value("label_specific")), Some(vec![0, 0, 1, 2]));
        assert_eq!(pickle.integers(value("label_general")), Some(vec![0, 0, 0, 1]));
        assert_eq!(pickle.texts(value("label_specific_str")).unwrap(), ["goldfinch", "crane", "café"]);
        assert_eq!(pickle.texts(value("label_general_str")).unwrap(), ["bird", "building"]);
        assert_eq!(pickle.texts(value("objects")).unwrap(), ["bird", "building"]);
        let scalars = pickle.items(value("scalars")).unwrap();
        let expected = [
            Value::Int(-5),
            Value::Int(1 << 40),
            Value::Int(3),
            Value::Bool(true),
            Value::None,
            Value::Float(2.5),
        ];
        assert_eq!(scalars, expected, "protocol {protocol}");
        assert_eq!(pickle.get(pickle.root(), "absent"), None);
    }
}

#[test]
fn images_of_every_protocol_are_ranges_of_the_file() {
    for protocol in 0..6 {
        let bytes = fixture(&format!("images_{protocol}.pkl"));
        let pickle = Pickle::parse(&bytes, "images.pkl").unwrap();
        let items = pickle.items(pickle.root()).unwrap();
        assert_eq!(items.len(), 2);
        for (item, from) in items.iter().zip([0u8, 150]) {
            let expected: Vec<u8> = (from..from + 100).step_by(3).collect();
            // Python 3 writes bytes as escaped text in protocol 0, which is no range of the file.
            let Some((range, latin1)) = pickle.byte_range(*item) else {
                assert_eq!(protocol, 0);
                continue;
            };
            let found = if latin1 { latin1_bytes(&bytes[range]).unwrap() } else { bytes[range].to_vec() };
            assert_eq!(found, expected, "protocol {protocol}");
        }
    }
}

#[test]
fn strings_of_python_2_are_read() {
    let pickle = Pickle::parse(b"\x80\x02]q\x01(U\x03abcq\x02T\x02\x00\x00\x00dee.", "x").unwrap();
    assert_eq!(pickle.texts(pickle.root()).unwrap(), ["abc", "de"]);
    let pickle = Pickle::parse(b"(lp0\nS'a\\n\\x41\\\\'\np1\nag1\na.", "x").unwrap();
    assert_eq!(pickle.texts(pickle.root()).unwrap(), ["a\nA\\", "a\nA\\"]);
}

#[test]
fn functions_are_refused_by_name() {
    for (bytes, name) in [
        (&b"cos\nsystem\n(S'echo no'\ntR."[..], "`os.system`"),
        (b"cposix\nsystem\n(S'echo no'\ntR.", "`posix.system`"),
        (b"c__builtin__\neval\n(S'1'\ntR.", "`__builtin__.eval`"),
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.", "`builtins.eval`"),
        (b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.", "`numpy.load`"),
        (b"(ios\nsystem\n.", "the instruction INST"),
        (b"\x80\x02N)\x81.", "the instruction NEWOBJ"),
        (b"\x80\x02\x82\x01.", "the instruction EXT1"),
        (b"Pid\n.", "the instruction PERSID"),
        (b"\xee", "the byte 0xee"),
    ] {
        let error = error(bytes);
        assert!(error.starts_with("x.pkl: pickle refused at byte "), "{error}");
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn damaged_pickles_end_in_an_error() {
    for bytes in [
        &b""[..],
        b".",
        b"\x80\x09N.",
        b"N",
        b"\x8b\xff\xff\xff\x7f",
        b"\x8a\x09123456789.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff",
        b"B\xff\xff\xff\xff",
        b"r\xff\xff\xff\xff",
        b"Nr\xff\xff\xff\xff.",
        b"h\x05.",
        b"(((((0",
        b"N(0.",
        b"NNa.",
        b"]Ns.",
        b"}(Nu.",
        b"t.",
        b"S'unfinished",
        b"S'\\q'\n.",
        b"I12x\n.",
        b"cnumpy\ndtype\n)R.",
        b"cnumpy\nndarray\nNR.",
        b"NNR.",
        b"NNb.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R.",
    ] {
        let error = error(bytes);
        assert!(error.starts_with("x.pkl: damaged pickle at byte "), "{bytes:?}: {error}");
    }
    // Deep nesting takes a little memory per byte and no recursion.
    let mut deep = b"]".repeat(1_000_000);
    deep.extend(b"a".repeat(999_999));
    deep.push(b'.');
    assert!(Pickle::parse(&deep, "x").is_ok());
    assert!(Pickle::parse(&b"(".repeat(1_000_000), "x").is_err());
}
