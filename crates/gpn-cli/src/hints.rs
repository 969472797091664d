//! What a user can type to get past an error: the library says what is wrong, and this adds the option that helps.

use std::path::Path;

use gpn::Error;
use gpn::data::DataError;
use gpn::encode::EncodeError;
use gpn::taxonomy::TaxonomyKind;
use gpn::train::TrainError;

/// What to type, for an error of the library that an option or command helps with.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<Error>() {
            of_library(error)
        } else if let Some(error) = cause.downcast_ref::<TrainError>() {
            of_training(error)
        } else if let Some(error) = cause.downcast_ref() {
            of_data(error)
        } else {
            of_serving(cause)
        }
    })
}

#[cfg(feature = "server")]
fn of_serving(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let gpn_server::ServeError::TokenMissing { .. } = error.downcast_ref()? else { return None };
    Some("give --write-token-file or GPN_WRITE_TOKEN".into())
}

#[cfg(not(feature = "server"))]
fn of_serving(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}

fn of_library(error: &Error) -> Option<String> {
    Some(match error {
        Error::Train(error) => return of_training(error),
        Error::Data(error) => return of_data(error),
        Error::Encode(error) => return of_encoding(error),
        Error::AlreadyTaught { .. } => "--more adds to them, --replace forgets them".into(),
        Error::AlreadyPlaced { .. } => "--replace does that".into(),
        Error::NoPrototypes { .. } => "`gpn eval` evaluates it".into(),
        Error::EncoderMissing { .. } => "name it with --encoder FILE".into(),
        Error::NothingToChoose => "`gpn teach` does that".into(),
        Error::Exists { .. } => "name another file, or pass --force to replace it".into(),
        Error::NotThisShard { .. } => "name another folder, or pass --force to replace it".into(),
        Error::TaxonomyMissing { .. } => {
            format!(
                "name one with --taxonomy KIND:PATH ({})",
                TaxonomyKind::ALL.map(TaxonomyKind::as_str).join(", ")
            )
        }
        Error::NoSuchClass { reason, .. } if reason == "there is no such class" => {
            "`gpn classes MODEL` lists them".into()
        }
        Error::HopsOverlap { .. } => "change --close or --far".into(),
        Error::BenchmarkMissing => "name it with --data; `gpn data build` makes one".into(),
        Error::OtherBenchmark { .. } => "name that one with --data".into(),
        _ => return None,
    })
}

fn of_encoding(error: &EncodeError) -> Option<String> {
    Some(match error {
        EncodeError::Data(error) => return of_data(error),
        EncodeError::Unfit { reason, .. } if reason.contains("name the one to take as `output`") => {
            "--encoder-output NAME does that".into()
        }
        EncodeError::Unfit { reason, .. } if reason.contains("shared library") => {
            "name it with --onnxruntime FILE".into()
        }
        EncodeError::Setting { .. } => {
            "the options --encoder-... and the file beside the model set it".into()
        }
        _ => return None,
    })
}

fn of_training(error: &TrainError) -> Option<String> {
    let resume = |path: &Path| format!("go on with `gpn train --resume {}`", path.display());
    Some(match error {
        TrainError::Data(error) => return of_data(error),
        TrainError::WithoutMpi => {
            "`cargo build --release -p gpn-cli --features mpi` builds it with MPI".into()
        }
        TrainError::Unfinished { path, best: None } => resume(path),
        TrainError::Unfinished { path, best: Some((episode, best)) } => format!(
            "{}, or name its best model so far, {} (after episode {episode})",
            resume(path),
            best.display()
        ),
        TrainError::RunExists { path } => {
            format!("{}, choose another directory, or pass --force to train anew in its place", resume(path))
        }
        TrainError::NoCheckpoint { path } => format!("train it with `gpn train --resume {}`", path.display()),
        TrainError::NotARun { .. } => "start one with `gpn train --data DIR --out RUN`".into(),
        TrainError::NotAModel { .. } => "`gpn fit` and `gpn train` make models".into(),
        TrainError::WeightsOnly { .. } => "weights alone can be used with `gpn train --init`".into(),
        TrainError::NoSamples { .. } => "build it without --classes-only".into(),
        _ => return None,
    })
}

fn of_data(error: &DataError) -> Option<String> {
    Some(match error {
        DataError::NoSamples { .. } => "pass --classes-only to work on the classes alone".into(),
        DataError::BenchmarkExists { .. } => "pass --force to replace it".into(),
        DataError::NotABenchmark { .. } => "make one with `gpn data build`".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_found_through_other_errors() {
        let exists = || DataError::BenchmarkExists { path: "bench".into() };
        for error in [
            anyhow::Error::from(exists()),
            anyhow::Error::from(TrainError::Data(exists())),
            anyhow::Error::from(Error::Data(exists())),
            anyhow::Error::from(exists()).context("cannot build"),
        ] {
            assert_eq!(hint(&error).as_deref(), Some("pass --force to replace it"));
        }
        assert_eq!(hint(&anyhow::anyhow!("bench: it holds a benchmark already")), None);
        assert_eq!(hint(&DataError::Interrupted.into()), None);
    }
}
