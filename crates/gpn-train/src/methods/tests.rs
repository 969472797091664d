use super::*;

#[test]
fn names_of_methods_are_proposed() {
    assert_eq!(MethodKind::named("ppn").unwrap().title, "PPN");
    let message = MethodKind::named("protonets").err().unwrap().to_string();
    assert!(message.contains("did you mean `protonet`?"), "{message}");
    assert!(message.contains("there are nearest, protonet"), "{message}");
}
