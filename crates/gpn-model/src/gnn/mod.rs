//! The few-shot graph neural network of Garcia and Bruna (ICLR 2018), a method to compare with.
//!
//! Each query gets a graph of its own: every support sample and the query, each joined to all others. A node holds its
//! embedding and a label field of `way` entries: 1 at its class for a support sample, `1 / way` everywhere for the
//! query. Several blocks then mix the nodes, and the last one answers at the query's node.
//!
//! | part | what it is |
//! |---|---|
//! | [`GnnConfig`] | the settings |
//! | [`Gnn`] | the network with its parameters: logits of queries, and a training step |
//! | `graphs` | which rows the nodes and pairs of each graph have |
//! | `pairs` | scores of pairs of nodes: an MLP over `|x_i - x_j|` |
//! | `adjacency` | softmax of the scores, and the sums over neighbours |
//! | `block` | one graph convolution over `[x, A x]` |
//! | `norm` | batch norm with the leaky ReLU after it |
//!
//! # What is not computed twice
//! `|x_i - x_j|` is symmetric, so the MLP runs on pairs `i < j` only. Every such pair stands for the two ordered pairs
//! of the same value, so mean and variance over them are those over all ordered pairs `i != j` (running variances count
//! `i < j`). Before the first block, support samples are the same in all graphs: their pairs are scored once and count
//! once per graph. The last block is read at queries alone, so outside training only pairs with them are scored.

mod adjacency;
mod block;
mod config;
mod graphs;
mod network;
mod norm;
mod pairs;

pub use config::GnnConfig;
pub use network::{Gnn, GnnPass};
