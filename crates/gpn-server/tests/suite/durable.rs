//! What was acknowledged is there after a restart; what is undone is as it was.

use std::path::Path;

use gpn::{Classifier, Device, IfTaught, NewClass, Parents, Sample, Watch};
use gpn_server::{Server, Settings};
use serde_json::json;

use crate::client::{delete, get, post_form, post_json};
use crate::fixture::{Running, folder, image, settings, start, untaught};

fn teach(server: &Running, class: &str, parent: &str, numbers: &[usize], if_taught: &str) -> u16 {
    let images: Vec<Vec<u8>> = numbers.iter().map(|&number| image(number)).collect();
    let files: Vec<(&str, &str, &[u8])> = images.iter().map(|bytes| ("image", "a.bmp", &bytes[..])).collect();
    let fields = [
        ("class", class),
        ("if_taught", if_taught),
        if parent.is_empty() { ("place", "unknown") } else { ("parents", parent) },
    ];
    post_form(server.address, "/api/teach", &fields, &files).status
}

fn samples(server: &Running, class: &str) -> Option<u64> {
    let answer = get(server.address, &format!("/api/classes/{class}"));
    (answer.status == 200).then(|| answer.json()["class"]["samples"].as_u64().unwrap())
}

fn export(server: &Running) -> Vec<u8> {
    get(server.address, "/api/export").body
}

#[test]
fn a_restart_keeps_everything() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let root = get(server.address, "/api/card").expect(200)["root"].as_str().unwrap().to_owned();
    assert_eq!(teach(&server, "a", &root, &[1, 2], "refuse"), 200);
    assert_eq!(teach(&server, "b", "a", &[3], "refuse"), 200);
    assert_eq!(teach(&server, "c", "", &[4], "refuse"), 200);
    assert_eq!(teach(&server, "b", "b", &[5], "replace"), 400, "a class below itself");
    assert_eq!(teach(&server, "c", "", &[6], "replace"), 200);
    assert_eq!(delete(server.address, "/api/classes/c").status, 200);
    let before = export(&server);
    drop(server);

    let server = start(settings(folder.path()));
    assert!(export(&server) == before, "the model is another one after the restart");
    assert_eq!(
        (samples(&server, "a"), samples(&server, "b"), samples(&server, "c")),
        (Some(2), Some(1), None)
    );
    // What was done before the restart can be undone after it, one change after the other.
    post_json(server.address, "/api/undo", &json!({ "class": "c" })).expect(200);
    assert_eq!(samples(&server, "c"), Some(1));
    // The class above cannot go before the one below.
    let refused = post_json(server.address, "/api/undo", &json!({ "class": "a" })).problem(409);
    assert!(refused.contains("cannot be undone now"), "{refused}");
    delete(server.address, "/api/classes/a").problem(400);
    post_json(server.address, "/api/undo", &json!({ "class": "b" })).expect(200);
    post_json(server.address, "/api/undo", &json!({ "class": "a" })).expect(200);
    assert_eq!((samples(&server, "a"), samples(&server, "b")), (None, None));
    for _ in 0..2 {
        post_json(server.address, "/api/undo", &json!({ "class": "c" })).expect(200);
    }
    drop(server);

    // Everything is undone: the model file again, to the last bit. The file itself was never touched.
    let out = folder.path().join("out.safetensors");
    gpn_server::export(&settings(folder.path()), &out).unwrap();
    let file = std::fs::read(folder.path().join("model.safetensors")).unwrap();
    assert!(std::fs::read(&out).unwrap() == file);
    assert!(
        gpn_server::export(&settings(folder.path()), &out).is_err(),
        "a file that is there is not replaced"
    );
}

/// Teaches a class to a model file itself.
fn teach_file(path: &Path, class: &str, numbers: &[usize]) {
    let classifier = Classifier::open(path, &Device::cpu()).unwrap();
    let samples = numbers.iter().map(|&number| Sample::image("a", image(number))).collect();
    let class = NewClass { class: class.into(), parents: Parents::FromGraph, samples };
    classifier.teach(&[class], IfTaught::Refuse, &Watch::default()).unwrap();
    classifier.save(path).unwrap();
}

#[test]
fn what_the_model_file_was_taught_comes_back() {
    let folder = folder();
    let id = &untaught(1)[0];
    teach_file(&folder.path().join("model.safetensors"), id, &[1, 2]);
    let server = start(settings(folder.path()));
    let first = export(&server);
    let add = [("class", &**id), ("if_taught", "add")];
    post_form(server.address, "/api/teach", &add, &[("image", "a.bmp", &image(3))]).expect(200);
    assert_eq!(samples(&server, id), Some(3));
    delete(server.address, &format!("/api/classes/{id}")).expect(200);
    let page = get(server.address, &format!("/api/classes/{id}")).expect(200);
    assert_eq!(page["class"]["kind"], "untaught");
    let forgotten = export(&server);
    drop(server);
    let server = start(settings(folder.path()));
    assert!(export(&server) == forgotten);
    post_json(server.address, "/api/undo", &json!({})).expect(200);
    assert_eq!(samples(&server, id), Some(3));
    post_json(server.address, "/api/undo", &json!({})).expect(200);
    assert!(export(&server) == first);
}

#[test]
fn a_database_belongs_to_one_server_and_one_model() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let second = Server::open(settings(folder.path())).err().unwrap();
    assert!(second.to_string().contains("another process serves this model"), "{second}");
    drop(server);
    let path = folder.path().join("model.safetensors");
    teach_file(&path, &untaught(1)[0], &[1]);
    let other = Server::open(settings(folder.path())).err().unwrap();
    assert!(other.to_string().contains("belongs to another model file"), "{other}");
}

#[test]
fn a_damaged_database_is_named() {
    let folder = folder();
    drop(start(settings(folder.path())));
    let path = folder.path().join("model.safetensors.redb");
    std::fs::write(&path, b"not a database at all").unwrap();
    let error = Server::open(settings(folder.path())).err().unwrap().to_string();
    assert!(error.contains("model.safetensors.redb"), "{error}");
    let missing = Server::open(Settings::new([("x".into(), folder.path().join("none"))])).err().unwrap();
    assert_eq!(missing.kind(), gpn::ErrorKind::NotFound);
}

/// `GPN_RESTART_ROUNDS=1000` makes it long.
#[test]
fn whatever_is_done_a_restart_gives_the_same_model() {
    let folder = folder();
    let ids = untaught(3);
    teach_file(&folder.path().join("model.safetensors"), &ids[0], &[1, 2]);
    let mut server = Some(start(settings(folder.path())));
    let root =
        get(server.as_ref().unwrap().address, "/api/card").expect(200)["root"].as_str().unwrap().to_owned();
    let classes = [&*ids[0], &*ids[1], &*ids[2], "a", "b", "c"];
    // A fixed sequence of numbers that look random.
    let mut number = 12_345_u64;
    let mut next = |below: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % below
    };
    let rounds: u64 =
        std::env::var("GPN_RESTART_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(80);
    let (mut done, mut refused) = (0, 0);
    for round in 0..rounds {
        let class = classes[next(6) as usize];
        let other = classes[next(6) as usize].to_owned();
        let parent = if next(2) == 0 { root.clone() } else { other };
        let running = server.as_ref().unwrap();
        let at = running.address;
        let status = match next(8) {
            0..=2 => {
                let one = image(next(9) as usize);
                let if_taught = ["refuse", "add", "replace"][next(3) as usize];
                let mut fields = vec![("class", class), ("if_taught", if_taught)];
                match next(3) {
                    0 => fields.push(("parents", &parent)),
                    1 => fields.push(("place", "unknown")),
                    _ => {}
                }
                post_form(at, "/api/teach", &fields, &[("image", "a.bmp", &one)]).status
            }
            3 => delete(at, &format!("/api/classes/{class}")).status,
            4 => post_json(at, &format!("/api/classes/{class}/move"), &json!({ "parents": [parent] })).status,
            5 => {
                let name = json!({ "name": format!("name {}", next(5)) });
                post_json(at, &format!("/api/classes/{class}/rename"), &name).status
            }
            6 => post_json(at, "/api/undo", &json!({ "class": class })).status,
            _ => post_json(at, "/api/undo", &json!({})).status,
        };
        assert!(status == 200 || (400..500).contains(&status), "round {round}: {status}");
        if status == 200 {
            done += 1;
        } else {
            refused += 1;
        }
        if round % 4 == 3 {
            let before = export(running);
            drop(server.take());
            server = Some(start(settings(folder.path())));
            assert!(export(server.as_ref().unwrap()) == before, "another model after round {round}");
        }
    }
    assert!(done > 20 && refused > 5, "{done} done, {refused} refused");
}
