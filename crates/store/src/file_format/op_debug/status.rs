//! Meanings of the bits of an AI Core status register.

/// One bit of the status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusCause {
    /// Negation of the smallest signed integer.
    NegateMin,
    /// Addition, subtraction, multiplication or multiply-add of integers.
    Integer,
    /// Floating-point arithmetic.
    Float,
    /// Conversion of a negative float to an unsigned integer.
    NegativeToUnsigned,
    /// Conversion of float32 or int32 to float16.
    ToF16,
    /// Accumulation in the cube unit.
    CubeAccumulate,
    /// A bit that no document names.
    Unknown(u64),
}

/// The causes that documents name, lowest bit first.
pub const KNOWN_CAUSES: [StatusCause; 6] = [
    StatusCause::NegateMin,
    StatusCause::Integer,
    StatusCause::Float,
    StatusCause::NegativeToUnsigned,
    StatusCause::ToF16,
    StatusCause::CubeAccumulate,
];

impl StatusCause {
    /// The bit in the register.
    pub fn bit(self) -> u64 {
        match self {
            StatusCause::NegateMin => 0x8,
            StatusCause::Integer => 0x10,
            StatusCause::Float => 0x20,
            StatusCause::NegativeToUnsigned => 0x80,
            StatusCause::ToF16 => 0x100,
            StatusCause::CubeAccumulate => 0x400,
            StatusCause::Unknown(bit) => bit,
        }
    }

    /// Describes in a few words what happened.
    pub fn description(self) -> &'static str {
        match self {
            StatusCause::NegateMin => "negation of the smallest signed integer",
            StatusCause::Integer => "integer addition, subtraction or multiplication",
            StatusCause::Float => "floating-point arithmetic",
            StatusCause::NegativeToUnsigned => "conversion of a negative float to unsigned",
            StatusCause::ToF16 => "conversion of float32 or int32 to float16",
            StatusCause::CubeAccumulate => "accumulation in the cube unit",
            StatusCause::Unknown(_) => "undocumented bit",
        }
    }
}

/// The causes whose bits are set, lowest bit first.
pub fn causes(status: u64) -> Vec<StatusCause> {
    (0..u64::BITS)
        .map(|i| 1 << i)
        .filter(|bit| status & bit != 0)
        .map(|bit| {
            let known = KNOWN_CAUSES.into_iter().find(|cause| cause.bit() == bit);
            // A bit without a name is still an overflow, so it must not vanish from the list.
            known.unwrap_or(StatusCause::Unknown(bit))
        })
        .collect()
}
