//! Every endpoint, as a client meets it.

use std::fmt::Write as _;

use gpn::{Among, IfTaught, NewClass, Parents, PredictRequest, Sample, Watch};
use serde_json::{Value, json};

use crate::client::{delete, get, post_form, post_json, request};
use crate::fixture::{classifier, folder, image, settings, start, untaught};

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02X}");
        escaped
    })
}

#[test]
fn the_journey_teach_predict_explain_undo() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.keep_images = true;
    let server = start(settings);
    let at = server.address;
    let id = &untaught(1)[0];
    let images: Vec<Vec<u8>> = (0..4).map(image).collect();

    let card = get(at, "/api/card").expect(200);
    assert_eq!(
        (&card["name"], &card["version"], &card["may_write"]),
        (&json!("birds"), &json!(0), &json!(true))
    );
    assert_eq!(card["input"]["image"]["height"], 32);

    let files: Vec<(&str, &str, &[u8])> =
        images[..3].iter().map(|bytes| ("image", "a.bmp", &bytes[..])).collect();
    let lesson = post_form(at, "/api/teach", &[("class", id)], &files).expect(200);
    assert_eq!((&lesson["version"], &lesson["taught"][0]["samples"]), (&json!(1), &json!(3)));
    assert_eq!(lesson["taught"][0]["place"], "in_graph");
    let difference = &lesson["classes"][0];
    assert_eq!(
        (&difference["before"]["class"]["kind"], &difference["before"]["shares"]),
        (&json!("untaught"), &Value::Null)
    );
    let shares = difference["after"]["shares"].as_array().unwrap();
    let sum: f64 = shares.iter().map(|share| share["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6 && shares.iter().any(|share| share["relation"] == "own"), "{shares:?}");

    // Answers are those of the library, to the last bit.
    let library = classifier();
    let samples = images[..3].iter().map(|bytes| Sample::image("a.bmp", bytes.clone())).collect();
    let class = NewClass { class: id.clone(), parents: Parents::FromGraph, samples };
    library.teach(&[class], IfTaught::Refuse, &Watch::default()).unwrap();
    let request = PredictRequest { explain: true, ..PredictRequest::default() };
    let query = Sample::image("q.bmp", images[3].clone());
    let expected = library.predict(&[query], &request, &Watch::default()).unwrap().remove(0).unwrap();
    let fields = [("request", r#"{"explain": true}"#)];
    let answer = post_form(at, "/api/predict", &fields, &[("image", "q.bmp", &images[3])]).expect(200);
    let expected: Value = serde_json::from_str(&serde_json::to_string(&expected).unwrap()).unwrap();
    assert_eq!(answer["predictions"][0], expected);
    assert_eq!(answer["version"], 1);

    let why = post_form(at, "/api/explain", &[], &[("image", "q.bmp", &images[0])]).expect(200);
    assert!(
        why["prediction"]["shaped_by"].is_array() && !why["path"].as_array().unwrap().is_empty(),
        "{why}"
    );
    let fields = [("request", r#"{"among": "taught"}"#)];
    let why = post_form(at, "/api/explain", &fields, &[("image", "q.bmp", &images[0])]).expect(200);
    assert_eq!(why["prediction"]["classes"][0]["id"], *id);
    assert_eq!(
        (&why["nearest_samples"][0]["distance"], &why["nearest_samples"][0]["number"]),
        (&json!(0.0), &json!(1))
    );

    let page = get(at, &format!("/api/classes/{}", percent(id))).expect(200);
    assert_eq!(
        (page["class"]["kind"].as_str(), page["samples"].as_array().unwrap().len()),
        (Some("taught"), 3)
    );
    assert_eq!(page["history"][0]["what"], "teach");
    assert_eq!(page["path"].as_array().unwrap().last().unwrap()["id"], *id);
    let kept = get(at, &format!("/api/classes/{}/samples/2/image", percent(id)));
    assert_eq!((kept.status, kept.header("content-type"), &kept.body), (200, Some("image/bmp"), &images[1]));
    get(at, &format!("/api/classes/{}/samples/9/image", percent(id))).problem(404);

    // The same class again is a conflict, unless samples are to be added; a sample counts once.
    post_form(at, "/api/teach", &[("class", id)], &files).problem(409);
    let more = [("image", "a.bmp", &images[0][..]), ("image", "b.bmp", &images[3][..])];
    let lesson = post_form(at, "/api/teach", &[("class", id), ("if_taught", "add")], &more).expect(200);
    assert_eq!((&lesson["taught"][0]["samples"], &lesson["taught"][0]["repeated"]), (&json!(4), &json!(1)));

    // An older version can still be asked.
    let old = post_form(
        at,
        "/api/predict?version=1",
        &[("request", r#"{"explain": true}"#)],
        &[("image", "q.bmp", &images[3])],
    );
    assert_eq!(old.expect(200), answer);
    post_form(at, "/api/predict?version=99", &[], &[("image", "q.bmp", &images[3])]).problem(404);

    let undone = post_json(at, "/api/undo", &json!({ "class": id })).expect(200);
    assert_eq!((&undone["version"], &undone["undone"]["number"]), (&json!(3), &json!(2)));
    let again = post_form(
        at,
        "/api/predict",
        &[("request", r#"{"explain": true}"#)],
        &[("image", "q.bmp", &images[3])],
    )
    .expect(200);
    assert_eq!(again["predictions"], answer["predictions"]);
    let undone = post_json(at, "/api/undo", &json!({})).expect(200);
    assert_eq!(undone["undone"]["number"], 1);
    assert_eq!(get(at, &format!("/api/classes/{}", percent(id))).expect(200)["class"]["kind"], "untaught");
    post_json(at, "/api/undo", &json!({})).problem(404);
    let history = get(at, "/api/history?limit=3").expect(200);
    let numbers: Vec<u64> = history["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["number"].as_u64().unwrap())
        .collect();
    assert_eq!((numbers, &history["next"]), (vec![4, 3, 2], &json!(2)));
    assert_eq!(history["changes"][2]["undone_by"], 3);
    let rest = get(at, "/api/history?before=2").expect(200);
    assert_eq!((rest["changes"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
}

#[test]
fn embeddings_teach_like_images() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let ids = untaught(3);
    let images: Vec<Vec<u8>> = (0..2).map(image).collect();
    let files: Vec<(&str, &str, &[u8])> = images.iter().map(|bytes| ("image", "a.bmp", &bytes[..])).collect();
    let embedded = post_form(at, "/api/embed", &[], &files).expect(200);
    let rows = &embedded["embeddings"];
    let dim = embedded["dim"].as_u64().unwrap() as usize;
    assert_eq!((rows.as_array().unwrap().len(), rows[0].as_array().unwrap().len()), (2, dim));

    post_form(at, "/api/teach", &[("class", &ids[0])], &files).expect(200);
    let body = json!({ "classes": [{ "class": ids[1], "embeddings": rows }] });
    post_json(at, "/api/teach", &body).expect(200);
    let raw: Vec<u8> = rows
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .flat_map(|value| (value.as_f64().unwrap() as f32).to_le_bytes())
        .collect();
    let path = format!("/api/teach?class={}&place=from_graph&if_taught=refuse", percent(&ids[2]));
    request(at, "POST", &path, &[("Content-Type", "application/octet-stream")], &raw).expect(200);

    // All three have the same samples: their first distances before propagation are the same.
    let ask = |body: &[u8], kind: &str| {
        let query = percent(&json!({ "among": { "listed": ids }, "lambda": 1.0, "top": 3 }).to_string());
        request(at, "POST", &format!("/api/predict?request={query}"), &[("Content-Type", kind)], body)
            .expect(200)
    };
    let answer = ask(&raw[..dim * 4], "application/octet-stream");
    let distances: Vec<f64> = answer["predictions"][0]["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["distance"].as_f64().unwrap())
        .collect();
    assert!(
        distances.len() == 3 && distances.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits()),
        "{distances:?}"
    );

    request(at, "POST", "/api/predict", &[("Content-Type", "application/octet-stream")], &raw[1..])
        .problem(400);
    post_json(at, "/api/predict", &json!({ "embeddings": [[1.0, 2.0]] })).expect(200)["predictions"][0]["error"]
        .as_str().unwrap().find("the embedding has 2 numbers").unwrap();
}

#[test]
fn classes_are_searched_paged_and_filtered() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let library = classifier();
    let all = library.classes();
    let mut found: Vec<Value> = Vec::new();
    let mut path = "/api/classes?limit=7".to_owned();
    loop {
        let page = get(at, &path).expect(200);
        assert_eq!(page["total"], all.len());
        found.extend(page["classes"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => path = format!("/api/classes?limit=7&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(Value::from(found), serde_json::to_value(&all).unwrap());

    let name = &all[3].name;
    let page = get(at, &format!("/api/classes?q={}", percent(&name.to_uppercase()))).expect(200);
    assert_eq!(page["classes"][0]["name"], *name);
    let page = get(at, "/api/classes?kind=taught").expect(200);
    assert_eq!((&page["total"], &page["next"]), (&json!(0), &Value::Null));
    let near = &name[..name.len() - 1];
    let page = get(at, &format!("/api/classes?q={}x", percent(near))).expect(200);
    assert!(page["total"] == 0 && page["did_you_mean"].is_string(), "{page}");
    for wrong in ["limit=0", "limit=1001", "limit=x", "cursor=x", "kind=odd", "other=1"] {
        get(at, &format!("/api/classes?{wrong}")).problem(400);
    }
    let missing = get(at, &format!("/api/classes/{}x", percent(near))).problem(404);
    assert!(missing.contains("did you mean"), "{missing}");
}

#[test]
fn the_graph_has_windows_with_taught_classes() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let window = get(at, "/api/graph?down=1&limit=50").expect(200);
    let root = window["center"].as_str().unwrap().to_owned();
    let nodes = window["nodes"].as_array().unwrap();
    assert!(nodes.iter().all(|node| node["depth"] == 0 || node["depth"] == 1), "{window}");
    assert_eq!(window["edges"].as_array().unwrap().len(), nodes.len() - 1);
    assert_eq!(nodes[0]["children"], nodes.len() - 1);
    let small = get(at, "/api/graph?down=9&limit=3").expect(200);
    assert_eq!((small["nodes"].as_array().unwrap().len(), &small["truncated"]), (3, &json!(true)));

    // A class of unknown place is linked to training classes.
    let one = image(1);
    post_form(at, "/api/teach", &[("class", "mine"), ("place", "unknown")], &[("image", "a.bmp", &one)])
        .expect(200);
    let whole = get(at, "/api/graph?down=64&limit=5000").expect(200);
    let mine = whole["nodes"].as_array().unwrap().iter().find(|node| node["id"] == "mine").unwrap();
    assert_eq!((&mine["kind"], &mine["samples"]), (&json!("taught"), &json!(1)));
    assert!(whole["links"].as_array().unwrap().iter().any(|link| link[0] == "mine"), "{whole}");
    // With parents it is an edge.
    let body = [("class", "mine"), ("parents", &root), ("if_taught", "replace")];
    post_form(at, "/api/teach", &body, &[("image", "a.bmp", &one)]).expect(200);
    let around = get(at, "/api/graph?node=mine").expect(200);
    assert_eq!(around["edges"][0], json!([root, "mine"]));
    for wrong in ["limit=0", "limit=5001", "up=65", "node=no-such-class", "down=-1"] {
        let answer = get(at, &format!("/api/graph?{wrong}"));
        assert!([400, 404].contains(&answer.status), "{wrong}: {answer:?}");
    }
}

#[test]
fn a_labelled_batch_is_tested() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let ids = untaught(2);
    let images: Vec<Vec<u8>> = (0..4).map(image).collect();
    for (id, images) in ids.iter().zip(images.chunks(2)) {
        let files: Vec<(&str, &str, &[u8])> =
            images.iter().map(|bytes| ("image", "a.bmp", &bytes[..])).collect();
        post_form(at, "/api/teach", &[("class", id)], &files).expect(200);
    }
    let files: Vec<(&str, &str, &[u8])> = vec![
        (&ids[0], "a.bmp", &images[0]),
        (&ids[0], "b.bmp", &images[1]),
        (&ids[1], "c.bmp", &images[2]),
        (&ids[1], "broken.bmp", b"no image"),
    ];
    let fields = [("request", r#"{"among": "taught", "top": 2}"#)];
    let result = post_form(at, "/api/test", &fields, &files).expect(200);
    assert_eq!(
        (&result["samples"], &result["top_accuracy"], &result["top"]),
        (&json!(3), &json!(1.0), &json!(2))
    );
    assert_eq!(result["failed"][0]["file"], "broken.bmp");
    let right: u64 =
        result["classes"].as_array().unwrap().iter().map(|class| class["correct"].as_u64().unwrap()).sum();
    let wrong: u64 =
        result["confusion"].as_array().unwrap().iter().map(|pair| pair["count"].as_u64().unwrap()).sum();
    assert_eq!(right + wrong, 3);
    assert!((result["accuracy"].as_f64().unwrap() - right as f64 / 3.0).abs() < 1e-12);
    post_form(at, "/api/test", &[], &[("no such class", "a.bmp", &images[0])]).problem(404);
}

#[test]
fn models_are_loaded_and_dropped_by_name() {
    let folder = folder();
    let more = crate::fixture::folder();
    std::fs::rename(more.path().join("model.safetensors"), more.path().join("trees.safetensors")).unwrap();
    let mut settings = settings(folder.path());
    settings.folder = Some(more.path().to_owned());
    settings.state = Some(folder.path().join("state"));
    let server = start(settings);
    let at = server.address;
    let listed = get(at, "/api/models").expect(200);
    assert_eq!((listed["models"].as_array().unwrap().len(), &listed["loadable"]), (1, &json!(["trees"])));
    get(at, "/api/models/trees/card").problem(404);
    let load = |name: &str| request(at, "POST", &format!("/api/models/{name}/load"), &[], b"");
    assert_eq!(load("trees").expect(200)["name"], "trees");
    load("trees").problem(409);
    for name in ["..%2F..%2Fetc%2Fpasswd", "trees.safetensors", "other"] {
        load(name).problem(404);
    }
    // Each has its own classes and its own history.
    let one = image(1);
    post_form(
        at,
        "/api/models/trees/teach",
        &[("class", "mine"), ("place", "unknown")],
        &[("image", "a", &one)],
    )
    .expect(200);
    get(at, "/api/models/trees/classes/mine").expect(200);
    get(at, "/api/classes/mine").problem(404);
    assert_eq!(get(at, "/api/models/birds/card").expect(200)["version"], 0);
    delete(at, "/api/models/trees").expect(204);
    get(at, "/api/models/trees/card").problem(404);
    load("trees").expect(200);
    assert_eq!(get(at, "/api/models/trees/classes/mine").expect(200)["class"]["samples"], 1);
    assert!(folder.path().join("state/trees.redb").is_file());
}

#[test]
fn an_export_is_a_plain_model() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let id = &untaught(1)[0];
    post_form(at, "/api/teach", &[("class", id)], &[("image", "a.bmp", &image(1))]).expect(200);
    let file = get(at, "/api/export");
    assert_eq!(
        (file.status, file.header("content-disposition")),
        (200, Some("attachment; filename=\"birds.safetensors\""))
    );
    let exported = gpn::Classifier::from_bytes(&file.body, "exported", &gpn::Device::cpu()).unwrap();
    assert_eq!(exported.class(id).unwrap().samples, 1);
    let candidates = exported.candidates(&Among::Taught, 0.0).unwrap();
    assert_eq!(candidates.classes().len(), 1);
}

#[test]
fn health_metrics_page_and_viewer() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    for path in ["/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"] {
        assert_eq!(get(at, path).status, 200, "{path}");
    }
    get(at, "/api/nowhere").problem(404);
    get(at, "/nowhere.js").problem(404);
    let wrong = request(at, "PATCH", "/api/card", &[], b"");
    assert!(wrong.header("allow").is_some_and(|allow| allow.contains("GET")), "{wrong:?}");
    wrong.problem(405);
    let page = get(at, "/");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(
        page.header("content-security-policy").unwrap().starts_with("default-src 'none'; script-src 'self'")
    );
    let tag = page.header("etag").unwrap();
    assert_eq!(request(at, "GET", "/", &[("If-None-Match", tag)], b"").status, 304);
    let viewer = get(at, "/api/docs");
    let text = String::from_utf8(viewer.body).unwrap();
    assert!(!text.contains("://"), "the viewer loads nothing foreign");
    assert_eq!(get(at, "/api/docs.js").header("x-content-type-options"), Some("nosniff"));
    let metrics = String::from_utf8(get(at, "/metrics").body).unwrap();
    for line in [
        "gpn_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1",
        "gpn_model_version{model=\"birds\"} 0",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}
