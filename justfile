# List the recipes.
default:
    @just --list

# Run all tests.
test:
    cargo test --release --workspace

# Run the tests against golden vectors and published data alone.
parity:
    cargo test --release --workspace -- parity published

# Compute the golden vectors anew: python3 with torch, numpy and pillow; for the measures hiclass, scikit-learn and networkx.
golden:
    python3 crates/gpn-golden/generate.py
    python3 crates/gpn-golden/measures.py

# Check format and lints.
lint:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets -- -D warnings

# Run the benchmarks of the class graph and of the data pipeline.
bench:
    cargo bench -p gpn-taxonomy
    cargo bench -p gpn-data

# Train over MPI with 1 to 4 ranks, kill ranks, and compare the bytes (`just mpi 20` kills 20 times).
mpi *kills:
    .ci/mpi {{kills}}

# Check the GPU back ends: cuda is type-checked, wgpu compared with the CPU (a software Vulkan driver will do).
gpu:
    .ci/gpu

# Flip 1,000 bits each of a model and a checkpoint; let two writers meet 500 times in each kind of writing; kill a server 100 times.
durable:
    GPN_FLIPS=1000 cargo test --release -p gpn flipped_bits -- --nocapture
    GPN_WRITER_ROUNDS=500 cargo test --release -p gpn-cli two_writers -- --nocapture
    GPN_KILL_ROUNDS=100 cargo test --release -p gpn-cli killed_server -- --nocapture

# Let clients that others wrote talk to a server: python3 with tritonclient[http], schemathesis and numpy.
clients model:
    cargo build --release -p gpn-cli
    crates/gpn-server/tests/clients/run target/release/gpn {{model}}

# Fuzz every reader of foreign bytes: 600,000 executions for each target (`just fuzz --runs N TARGET...` for others).
fuzz *arguments:
    fuzz/run {{arguments}}

# Everything the gate runs.
ci:
    .ci/run
