//! `aclAppLog`: log messages of the program.
//!
//! Lines go to standard error, or to standard output if `ASCEND_SLOG_PRINT_TO_STDOUT` is 1, from
//! the level of `ASCEND_GLOBAL_LOG_LEVEL` on (0 debug, 1 info, 2 warning, 3 error, 4 nothing;
//! default error).
//!
//! Rust cannot define variadic functions yet. A few instructions build the `va_list` that the C
//! library's `vsnprintf` expects, on the two architectures used with NPUs; elsewhere the format is
//! written verbatim.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::io::Write;

use opscope_store::visible::visible_lines;

use crate::border::value;
use crate::pointer::CText;

const LEVELS: [&str; 4] = ["DEBUG", "INFO", "WARNING", "ERROR"];
/// The default level.
const DEFAULT_LEVEL: usize = 3;
/// Maximum length of a line; the rest is cut.
const LINE_SIZE: usize = 4096;

unsafe extern "C" {
    fn vsnprintf(
        buffer: *mut c_char,
        size: usize,
        format: *const c_char,
        arguments: *mut c_void,
    ) -> c_int;
}

/// Writes a line with the arguments of a `va_list`; without one, the format is the text.
extern "C" fn log_list(
    level: i32,
    function: CText,
    file: CText,
    line: u32,
    format: *const c_char,
    arguments: *mut c_void,
) {
    value((), || {
        if !is_shown(level) || format.is_null() {
            return;
        }
        let mut buffer = vec![0_u8; LINE_SIZE];
        let text = if arguments.is_null() {
            // SAFETY: the caller passes a format, which is a C string.
            unsafe { CStr::from_ptr(format) }.to_string_lossy()
        } else {
            // SAFETY: the buffer has that size, the caller passes a format and arguments that fit
            // it, and `arguments` was laid out for them by `aclAppLog`.
            let n = unsafe { vsnprintf(buffer.as_mut_ptr().cast(), LINE_SIZE, format, arguments) };
            let n = usize::try_from(n).unwrap_or(0).min(LINE_SIZE - 1);
            String::from_utf8_lossy(&buffer[..n])
        };
        write(level, &function.lossy(), &file.lossy(), line, &text);
    });
}

fn is_shown(level: i32) -> bool {
    let from = std::env::var("ASCEND_GLOBAL_LOG_LEVEL").ok();
    let from = from.and_then(|level| level.trim().parse().ok());
    usize::try_from(level).is_ok_and(|level| level >= from.unwrap_or(DEFAULT_LEVEL))
}

fn write(level: i32, function: &str, file: &str, line: u32, text: &dyn Display) {
    let level = usize::try_from(level).ok();
    let level = level.and_then(|level| LEVELS.get(level));
    let level = level.unwrap_or(&"EVENT");
    let pid = std::process::id();
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_name());
    let program = program.unwrap_or_default().display();
    let time = opscope_store::clock::local().strftime("%Y-%m-%d-%H:%M:%S%.3f");
    let line =
        format!("[{level}] APP({pid},{program}):{time} [{file}:{line}] {function}: {text}\n");
    // The program's message may contain newlines, and names of files and models.
    let line = visible_lines(&line);
    // There is nowhere to report a closed output.
    let to_stdout = std::env::var("ASCEND_SLOG_PRINT_TO_STDOUT").is_ok_and(|value| value == "1");
    let _ = if to_stdout {
        std::io::stdout().write_all(line.as_bytes())
    } else {
        std::io::stderr().write_all(line.as_bytes())
    };
}

/// The System V calling convention: six words and eight vectors are in registers, of which this
/// function names five words; `al` is 0 without vectors.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn aclAppLog() {
    core::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        // 176 bytes of registers, 24 of va_list, 8 to stay aligned.
        "sub rsp, 208",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "test al, al",
        "je 2f",
        "movaps [rsp + 48], xmm0",
        "movaps [rsp + 64], xmm1",
        "movaps [rsp + 80], xmm2",
        "movaps [rsp + 96], xmm3",
        "movaps [rsp + 112], xmm4",
        "movaps [rsp + 128], xmm5",
        "movaps [rsp + 144], xmm6",
        "movaps [rsp + 160], xmm7",
        "2:",
        // Offsets of the next word and the next vector, the arguments on the stack, the registers.
        "mov dword ptr [rsp + 176], 40",
        "mov dword ptr [rsp + 180], 48",
        "lea rax, [rbp + 16]",
        "mov [rsp + 184], rax",
        "mov [rsp + 192], rsp",
        "lea r9, [rsp + 176]",
        "call {log_list}",
        "leave",
        "ret",
        log_list = sym log_list,
    )
}

/// The procedure call standard of 64-bit Arm: eight words and eight vectors are in registers, of
/// which this function names five words.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn aclAppLog() {
    core::arch::naked_asm!(
        // Frame and link, 64 bytes of words, 128 of vectors, 32 of va_list.
        "stp x29, x30, [sp, #-240]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "stp q0, q1, [sp, #80]",
        "stp q2, q3, [sp, #112]",
        "stp q4, q5, [sp, #144]",
        "stp q6, q7, [sp, #176]",
        // The arguments on the stack, the ends of the words and of the vectors, and the negative
        // offsets of the next ones.
        "add x9, sp, #240",
        "str x9, [sp, #208]",
        "add x9, sp, #80",
        "str x9, [sp, #216]",
        "add x9, sp, #208",
        "str x9, [sp, #224]",
        "mov w9, #-24",
        "str w9, [sp, #232]",
        "mov w9, #-128",
        "str w9, [sp, #236]",
        "add x5, sp, #208",
        "bl {log_list}",
        "ldp x29, x30, [sp], #240",
        "ret",
        log_list = sym log_list,
    )
}

/// The named arguments are passed as in a function without variable arguments.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[unsafe(no_mangle)]
extern "C" fn aclAppLog(
    level: i32,
    function: CText,
    file: CText,
    line: u32,
    format: *const c_char,
) {
    log_list(level, function, file, line, format, std::ptr::null_mut());
}
