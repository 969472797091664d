//! The OpenAPI document against the server.

use crate::client::get;
use crate::fixture::{folder, settings, start};

#[test]
fn the_document_is_served_and_its_paths_exist() {
    let folder = folder();
    let server = start(settings(folder.path()));
    let document = get(server.address, "/api/openapi.json").expect(200);
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("{model}", "birds").replace("{class}", "none").replace("{sample}", "1");
        if item.get("get").is_some() {
            let answer = get(server.address, &path);
            assert!(
                answer.status == 200 || answer.json()["detail"] != "there is nothing at this address",
                "{path}"
            );
        }
    }
}
