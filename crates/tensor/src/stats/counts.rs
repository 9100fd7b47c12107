//! The counts that statistics have of elements, declared once.

/// Declares [`ElementCounts`] with everything that handles all counts alike.
macro_rules! element_counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Numbers of a tensor's elements of each kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct ElementCounts {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl ElementCounts {
            /// The names of the counts.
            pub const NAMES: [&'static str; [$(stringify!($name)),+].len()] =
                [$(stringify!($name)),+];
            /// The counts of no elements.
            pub const EMPTY: ElementCounts = ElementCounts { $($name: 0,)+ };

            /// The counts, in the order of [`ElementCounts::NAMES`].
            pub fn to_array(&self) -> [u64; ElementCounts::NAMES.len()] {
                [$(self.$name),+]
            }

            /// Counts in the order of [`ElementCounts::NAMES`].
            pub fn from_array([$($name),+]: [u64; ElementCounts::NAMES.len()]) -> ElementCounts {
                ElementCounts { $($name),+ }
            }

            /// Adds the counts of other elements.
            pub(super) fn add(&mut self, other: &ElementCounts) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

element_counts! {
    /// Number of elements, NaN and infinite ones included.
    n_elements,
    /// Number of NaN elements. They take no part in what is computed of the others.
    n_nan,
    /// Number of elements that are `+inf`. They do take part in the other numbers.
    n_pos_inf,
    /// Number of elements that are `-inf`. They do take part in the other numbers.
    n_neg_inf,
    /// Number of zeros of both signs.
    n_zero,
    /// Number of zeros with a minus sign.
    n_neg_zero,
    /// Number of elements below zero, `-inf` included.
    n_negative,
    /// Number of elements too small for the full precision of their dtype, zeros excluded.
    n_subnormal,
    /// Number of finite elements at an end of the range of their dtype: of floats the largest
    /// magnitude, of integers the lowest and the highest value. Of `bool` and `uint1`, none.
    n_saturated,
}

impl ElementCounts {
    /// Number of elements that are neither NaN nor infinite.
    pub fn n_finite(&self) -> u64 {
        self.n_elements - self.n_nan - self.n_pos_inf - self.n_neg_inf
    }

    /// Number of elements above zero, `+inf` included.
    pub fn n_positive(&self) -> u64 {
        self.n_elements - self.n_nan - self.n_zero - self.n_negative
    }
}

#[cfg(test)]
mod tests {
    use super::ElementCounts;

    #[test]
    fn arrays_keep_the_order_of_names() {
        let counts = ElementCounts {
            n_nan: 3,
            n_saturated: 5,
            ..ElementCounts::EMPTY
        };
        let array = counts.to_array();
        let named = ElementCounts::NAMES.into_iter().zip(array);
        for (name, count) in named {
            let expected = match name {
                "n_nan" => 3,
                "n_saturated" => 5,
                _ => 0,
            };
            assert_eq!(count, expected, "{name}");
        }
        assert_eq!(ElementCounts::from_array(array), counts);
    }
}
