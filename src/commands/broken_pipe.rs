//! A reader that has seen enough, as in `rota compare | head`: the program ends quietly instead of panicking.
//!
//! Rust ignores SIGPIPE, so that `println!` panics when its reader is gone. The signal's default is not restored, because
//! the process must survive a solver or a container client that dies while it is written to. Such a panic is recognised here
//! instead, once for all commands.

use std::any::Any;
use std::panic;
use std::process;

/// What a shell reports for a process that SIGPIPE ended: 128 and the signal's number.
const EXIT_CODE: i32 = 141;

/// From now on, printing to a closed pipe ends the process without a message.
pub(super) fn end_quietly() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_closed_pipe(info.payload()) {
            process::exit(EXIT_CODE);
        }
        usual(info);
    }));
}

/// The message with which the standard library's `print!` and `eprint!` panic.
fn is_closed_pipe(payload: &(dyn Any + Send)) -> bool {
    let message = payload.downcast_ref::<String>().map(String::as_str);
    message.is_some_and(|text| text.starts_with("failed printing to std") && text.contains("Broken pipe"))
}
