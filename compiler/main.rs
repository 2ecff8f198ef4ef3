//! The executable `atlc`: calls the command line and turns its result into the exit status. The only `exit` there is.

fn main() {
    let status = atlc::cli::main(std::env::args_os());
    std::process::exit(i32::from(status.0))
}
