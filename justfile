# List the recipes.
default:
    @just --list

# Run all tests.
test:
    cargo test --release --workspace

# Run the tests against the golden vectors alone.
parity:
    cargo test --release --workspace parity

# Check format and lints.
lint:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets -- -D warnings

# Run the benchmarks of the class graph and of the data pipeline.
bench:
    cargo bench -p gpn-taxonomy
    cargo bench -p gpn-data

# Run the test on a GPU back end (a software Vulkan driver will do), not optimised: results are compared, not times.
wgpu:
    cargo --config 'profile.wgpu.inherits="release"' --config 'profile.wgpu.opt-level=0' --config 'profile.wgpu.debug=false' \
        test --profile wgpu -p gpn-model --features wgpu --test suite wgpu

# Everything the gate runs.
ci:
    .ci/run
