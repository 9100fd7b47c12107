//! Two-stage operators: a pair of functions for each row of the table.

use opscope_acl::{Answer, Handle, RawArgument};

use crate::border::{Code, call, process};
use crate::pointer::{CText, OutPointer};

/// C types of the parameter kinds.
#[allow(dead_code, reason = "a kind may have no operator")]
mod kinds {
    use opscope_acl::Handle;

    use crate::pointer::CText;

    pub(super) type Tensor = Handle;
    pub(super) type OptionalTensor = Handle;
    pub(super) type Out = Handle;
    pub(super) type OptionalOut = Handle;
    pub(super) type Inplace = Handle;
    pub(super) type OptionalInplace = Handle;
    pub(super) type TensorList = Handle;
    pub(super) type OutList = Handle;
    pub(super) type Scalar = Handle;
    pub(super) type OptionalScalar = Handle;
    pub(super) type ScalarList = Handle;
    pub(super) type IntArray = Handle;
    pub(super) type OptionalIntArray = Handle;
    pub(super) type FloatArray = Handle;
    pub(super) type BoolArray = Handle;
    pub(super) type Int = i64;
    pub(super) type Int32 = i32;
    pub(super) type Int8 = i8;
    pub(super) type Unsigned = u64;
    pub(super) type Double = f64;
    pub(super) type Float = f32;
    /// C's `bool` is a byte.
    pub(super) type Flag = u8;
    pub(super) type DataType = i32;
    pub(super) type Text = CText;
}

/// Converts a parameter to the process's type.
trait PassedArgument {
    fn raw(self) -> Answer<RawArgument>;
}

macro_rules! passed {
    ($($type:ty: $value:ident => $raw:expr;)+) => {$(
        impl PassedArgument for $type {
            fn raw(self) -> Answer<RawArgument> {
                let $value = self;
                Ok($raw)
            }
        }
    )+};
}

passed! {
    Handle: object => RawArgument::Object(object);
    i64: number => RawArgument::Int(number);
    i32: number => RawArgument::Int(number.into());
    i8: number => RawArgument::Int(number.into());
    // A number beyond the signed range is as invalid as a negative one.
    u64: number => RawArgument::Int(number.cast_signed());
    f64: number => RawArgument::Number(number);
    f32: number => RawArgument::Number(number.into());
    u8: flag => RawArgument::Int((flag != 0).into());
    // Text that is not UTF-8 becomes a name that no operator knows, so that a message can show it.
    CText: text => RawArgument::Text(Some(text.lossy().into_owned()).filter(|name| !name.is_empty()));
}

fn prepare(
    function: &'static str,
    arguments: Answer<Vec<RawArgument>>,
    workspace_size: OutPointer<u64>,
    executor: OutPointer<Handle>,
) -> Answer {
    // This precedes the arguments: without these pointers nothing can be returned.
    for (is_null, parameter) in [
        (workspace_size.is_null(), "workspaceSize"),
        (executor.is_null(), "executor"),
    ] {
        if is_null {
            return Err(process().aclnn_null(function, parameter));
        }
    }
    // Nothing is stored if the call fails, so the program's values stay.
    let prepared = process().prepare_aclnn(function, &arguments?)?;
    workspace_size.set(0);
    executor.set(prepared);
    Ok(())
}

/// The two functions of each row. Only an attribute can build their names from the row's.
macro_rules! two_stages {
    ($family:literal; $(
        $op_type:ident($header:literal, $meaning:literal) by $compose:ident $arguments:tt:
            $($function:ident($($parameter:ident: $kind:ident),*)),+;
    )+) => {$($(
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($function), "GetWorkspaceSize"))]
            extern "C" fn stage_one(
                $($parameter: kinds::$kind,)*
                workspace_size: OutPointer<u64>,
                executor: OutPointer<Handle>,
            ) -> Code {
                call(|| {
                    let arguments = [$($parameter.raw()),*].into_iter().collect();
                    prepare(stringify!($function), arguments, workspace_size, executor)
                })
            }

            #[unsafe(export_name = stringify!($function))]
            extern "C" fn stage_two(
                _workspace: usize,
                _workspace_size: u64,
                executor: Handle,
                stream: Handle,
            ) -> Code {
                call(|| process().run_aclnn(stringify!($function), executor, stream))
            }
        };
    )+)+};
}

opscope_acl::aclnn_operators!(two_stages);
