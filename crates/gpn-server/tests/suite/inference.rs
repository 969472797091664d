//! The Open Inference Protocol, as its clients speak it.

use serde_json::{Value, json};

use crate::client::{get, post_json, request};
use crate::fixture::{classifier, folder, image, settings, start};

#[test]
fn metadata_is_that_of_the_protocol() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let about = get(at, "/v2").expect(200);
    assert_eq!((&about["name"], &about["extensions"]), (&json!("gpn"), &json!(["binary_tensor_data"])));
    for path in ["/v2/models/birds", "/v2/models/birds/versions/0"] {
        let model = get(at, path).expect(200);
        assert_eq!(
            (&model["name"], &model["versions"], &model["platform"]),
            (&json!("birds"), &json!(["0"]), &json!("gpn"))
        );
        assert_eq!(
            model["inputs"],
            json!([{ "name": "image", "datatype": "UINT8", "shape": [-1, -1, -1, 3] }])
        );
    }
    assert_eq!(get(at, "/v2/models/birds/ready").status, 200);
    for path in [
        "/v2/models/none",
        "/v2/models/birds/versions/7",
        "/v2/models/none/ready",
        "/v2/models/birds/versions/x",
    ] {
        let missing = get(at, path);
        assert_eq!(missing.status, 404, "{path}");
        assert!(missing.json()["error"].is_string() || missing.json()["detail"].is_string());
    }
}

/// The values of an output.
fn output<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["outputs"].as_array().unwrap().iter().find(|output| output["name"] == name).unwrap()
}

#[test]
fn json_and_binary_tensors_answer_alike() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let at = server.address;
    let decoded = gpn::data::decode(&image(3), "x").unwrap();
    let shape = json!([1, decoded.height(), decoded.width(), 3]);
    let asked = json!([{ "name": "class_id" }, { "name": "probabilities" }, { "name": "classes" }, { "name": "embedding" }]);
    let body = json!({
        "id": "seven",
        "inputs": [{ "name": "image", "shape": shape, "datatype": "UINT8", "data": decoded.pixels() }],
        "outputs": asked,
    });
    let answer = post_json(at, "/v2/models/birds/infer", &body).expect(200);
    assert_eq!(
        (&answer["id"], &answer["model_name"], &answer["model_version"]),
        (&json!("seven"), &json!("birds"), &json!("0"))
    );
    let probabilities = output(&answer, "probabilities")["data"].as_array().unwrap();
    let sum: f64 = probabilities.iter().map(|value| value.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    let classes = output(&answer, "classes")["data"].as_array().unwrap();
    assert_eq!(classes.len(), probabilities.len());

    // The library says the same.
    let sample = gpn::Sample::image("x", image(3));
    let expected =
        classifier().predict(&[sample], &gpn::PredictRequest::default(), &gpn::Watch::default()).unwrap();
    let best = &expected[0].as_ref().unwrap().classes[0];
    assert_eq!(output(&answer, "class_id")["data"], json!([best.id]));
    let column = classes.iter().position(|class| *class == best.id).unwrap();
    assert_eq!(
        (probabilities[column].as_f64().unwrap() as f32).to_bits(),
        (best.probability as f32).to_bits()
    );

    // The same as bytes: pixels, a file, and the embedding.
    let embedding: Vec<f32> = output(&answer, "embedding")["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap() as f32)
        .collect();
    let mut file = (image(3).len() as u32).to_le_bytes().to_vec();
    file.extend(image(3));
    let inputs = [
        ("UINT8", shape, decoded.pixels().to_vec()),
        ("BYTES", json!([1]), file),
        (
            "FP32",
            json!([1, embedding.len()]),
            embedding.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ),
    ];
    for (datatype, shape, bytes) in inputs {
        let head = json!({
            "inputs": [{ "name": "x", "shape": shape, "datatype": datatype, "parameters": { "binary_data_size": bytes.len() } }],
            "outputs": [{ "name": "probabilities", "parameters": { "binary_data": true } }, { "name": "class_id" }],
        })
        .to_string();
        let body = [head.as_bytes(), &bytes].concat();
        let headers = [("Inference-Header-Content-Length", &*head.len().to_string())];
        let binary = request(at, "POST", "/v2/models/birds/versions/0/infer", &headers, &body);
        assert_eq!(binary.status, 200, "{datatype}: {binary:?}");
        let end: usize = binary.header("inference-header-content-length").unwrap().parse().unwrap();
        let told: Value = serde_json::from_slice(&binary.body[..end]).unwrap();
        assert_eq!(output(&told, "class_id")["data"], json!([best.id]), "{datatype}");
        assert_eq!(output(&told, "probabilities")["parameters"]["binary_data_size"], binary.body.len() - end);
        let found: Vec<f32> = binary.body[end..]
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        let expected: Vec<f32> = probabilities.iter().map(|value| value.as_f64().unwrap() as f32).collect();
        assert_eq!(found, expected, "{datatype}");
    }
}

#[test]
fn wrong_tensors_are_refused() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let input = |shape: Value, datatype: &str, data: Value| json!({ "inputs": [{ "name": "x", "shape": shape, "datatype": datatype, "data": data }] });
    for body in [
        json!({}),
        json!({ "inputs": [] }),
        json!([]),
        input(json!([1, 2]), "FP32", json!([1])),
        input(json!([1, 2]), "FP32", json!([1, 2])),
        input(json!([2]), "FP32", json!([1, 2])),
        input(json!([1, 1, 1, 4]), "UINT8", json!([1, 2, 3, 4])),
        input(json!([0, 1, 1, 3]), "UINT8", json!([])),
        input(json!([1]), "BYTES", json!(["bm8gaW1hZ2U="])),
        input(json!([1]), "INT8", json!([1])),
        input(json!([-1]), "FP32", json!([1])),
        json!({ "inputs": [{ "name": "x", "shape": [1], "datatype": "BYTES", "parameters": { "binary_data_size": 9 } }] }),
    ] {
        let answer = post_json(server.address, "/v2/models/birds/infer", &body);
        assert!((400..=422).contains(&answer.status), "{body}: {answer:?}");
        assert!(answer.json()["error"].is_string());
    }
    let head = [("Inference-Header-Content-Length", "99")];
    assert_eq!(request(server.address, "POST", "/v2/models/birds/infer", &head, b"{}").status, 400);
}
