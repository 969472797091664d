//! Golden vectors for the tests of all crates: numbers worked out from the method's formulas by another program.
//!
//! In: the prefix of a kind of case, such as `d_resnet08_`. Out: the cases found, of which there is always one,
//! because the fixtures of this crate are part of the repository and a missing one is a failure. `generate.py` makes
//! them; `README.md` says what each array is. Cases of the same layout in the folder that `GPN_GOLDEN_DIR` names
//! (default: `../shared/golden` beside the repository) are run in addition.
//!
//! ```
//! let cases = gpn_golden::npz_cases("f_adam");
//! assert_eq!(cases[0].array("p0").shape, cases[0].array("grad0").shape);
//! gpn_golden::assert_close("itself", cases[0].values("p1"), cases[0].values("p1"), 1e-6);
//! ```

mod case;
mod compare;
mod found;

pub use case::{Array, Case, JsonCase};
pub use compare::{assert_close, assert_close_relative, relative_difference};
pub use found::{data_folder, further_npz_cases, golden_folder, json_cases, npz_cases};
