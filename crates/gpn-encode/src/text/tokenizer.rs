//! Texts to the numbers of their tokens.

/// The numbers of a text's tokens.
pub(super) struct Tokens {
    pub(super) ids: Vec<u32>,
    pub(super) types: Vec<u32>,
}

#[cfg(feature = "encoders")]
pub(super) use present::Tokenizer;

#[cfg(feature = "encoders")]
mod present {
    use gpn_data::contain;
    use tokenizers::TruncationParams;

    use super::Tokens;

    /// What a `tokenizer.json` describes. No text makes it panic.
    pub(in crate::text) struct Tokenizer(tokenizers::Tokenizer);

    impl Tokenizer {
        pub(in crate::text) fn from_bytes(json: &[u8]) -> Result<Self, String> {
            let read = || tokenizers::Tokenizer::from_bytes(json).map_err(|error| error.to_string());
            let tokenizer = contain(read).unwrap_or_else(|| Err("it is damaged".into()));
            let mut tokenizer = tokenizer.map_err(|reason| format!("it is no tokenizer: {reason}"))?;
            tokenizer.with_padding(None);
            Ok(Self(tokenizer))
        }

        /// The length that texts are cut to, where the file has one.
        pub(in crate::text) fn max_tokens(&self) -> Option<usize> {
            self.0.get_truncation().map(|truncation| truncation.max_length)
        }

        /// Cuts texts to this length from now on.
        pub(in crate::text) fn truncate(&mut self, max_length: usize) -> Result<(), String> {
            let truncation = TruncationParams { max_length, ..TruncationParams::default() };
            self.0.with_truncation(Some(truncation)).map(|_| ()).map_err(|error| error.to_string())
        }

        /// The tokens of a text, with those that mark its begin and end.
        pub(in crate::text) fn tokens(&self, text: &str) -> Result<Tokens, String> {
            let encode = || self.0.encode_fast(text, true).map_err(|error| error.to_string());
            let encoding =
                contain(encode).unwrap_or_else(|| Err("it cannot be divided into tokens".into()))?;
            Ok(Tokens { ids: encoding.get_ids().to_vec(), types: encoding.get_type_ids().to_vec() })
        }
    }
}

#[cfg(not(feature = "encoders"))]
pub(super) use absent::Tokenizer;

#[cfg(not(feature = "encoders"))]
mod absent {
    use super::Tokens;

    /// There is none in a program without encoders: no value of this type exists.
    pub(in crate::text) enum Tokenizer {}

    impl Tokenizer {
        pub(in crate::text) fn from_bytes(_: &[u8]) -> Result<Self, String> {
            Err(crate::runtime::WITHOUT_ENCODERS.into())
        }

        pub(in crate::text) fn max_tokens(&self) -> Option<usize> {
            match *self {}
        }

        pub(in crate::text) fn truncate(&mut self, _: usize) -> Result<(), String> {
            match *self {}
        }

        pub(in crate::text) fn tokens(&self, _: &str) -> Result<Tokens, String> {
            match *self {}
        }
    }
}
