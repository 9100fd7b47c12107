//! Runs of 64-bit numbers, the parts of every layout.

use serde_json::{Value, json};

/// How a number is shown in JSON.
#[derive(Clone, Copy)]
pub(super) enum WordForm {
    Number,
    /// As hexadecimal text.
    Address,
}

impl WordForm {
    pub(super) fn show(self, word: u64) -> Value {
        match self {
            WordForm::Number => json!(word),
            WordForm::Address => json!(format!("{word:#x}")),
        }
    }
}

/// Defines a struct of numbers that lie one after the other, and its form in bytes and in JSON.
///
/// One list for all of these keeps them in step: the fields' order is the order in the file and in
/// the text, and their names are the members' names. A field behind `;` is not in the run; it has
/// its default after reading.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$word_meta:meta])* $word:ident: $form:ident,)+
            $(; $(#[$other_meta:meta])* $other:ident: $other_type:ty,)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$word_meta])* pub $word: u64,)+
            $($(#[$other_meta])* pub $other: $other_type,)?
        }

        impl $name {
            pub(super) fn decode(bytes: &[u8], at: usize) -> Result<$name, FormatError> {
                let [$($word),+] = super::u64s_at(bytes, at)?;
                Ok($name { $($word,)+ $($other: Default::default(),)? })
            }

            pub(super) fn words(&self) -> Vec<u64> {
                vec![$(self.$word),+]
            }

            pub(super) fn json(&self) -> Value {
                let mut members = serde_json::Map::new();
                $(members.insert(
                    stringify!($word).to_owned(),
                    super::words::WordForm::$form.show(self.$word),
                );)+
                Value::Object(members)
            }

            pub(super) fn from_members(members: &JsonMembers<'_>) -> Result<$name, FormatError> {
                Ok($name {
                    $($word: members.number(stringify!($word))?,)+
                    $($other: Default::default(),)?
                })
            }
        }
    };
}

pub(super) use words;
