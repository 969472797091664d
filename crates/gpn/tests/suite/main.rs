//! Tests through the public interface, in one binary that links quickly.

mod bulk;
mod classifier;
mod damage;
mod distributed;
mod embed;
mod fit;
#[path = "../../../gpn-train/tests/suite/fixture.rs"]
mod fixture;
mod journey;
mod json;
mod measure;
mod own_method;
mod prior;
