//! Selvedge's measurements. `cargo xtask bench NAME` builds and runs this in release mode.
//!
//! Every figure is a ratio of two things measured in the same run, alternating, so that other work of the
//! machine slows both; the spread between the best and the worst run is printed beside it.

#![forbid(unsafe_code)]

mod campaigns;
mod confirm;
mod determinism;
mod discipline;
mod measure;
mod ndseq;
mod noninterference;
mod passes;
mod place;
mod plot;
mod races;
mod real;
mod specs;
mod spmd;
mod synthetic;
mod trace;
mod tsan;

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["campaigns", rest @ ..] => campaigns::run(rest),
        ["confirm", rest @ ..] => confirm::run(rest),
        ["discipline", rest @ ..] => discipline::run(rest),
        ["determinism", rest @ ..] => determinism::run(rest),
        ["trace", rest @ ..] => trace::run(rest),
        ["races", rest @ ..] => races::run(rest),
        ["programs", rest @ ..] => real::programs::run(rest),
        ["noninterference", rest @ ..] => noninterference::run(rest),
        ["ndseq", rest @ ..] => ndseq::run(rest),
        ["real", rest @ ..] => real::run(rest),
        ["specs", rest @ ..] => specs::run(rest),
        ["spmd", rest @ ..] => spmd::run(rest),
        ["tsan", rest @ ..] => tsan::run(rest),
        ["child", command @ ..] => measure::child(command),
        _ => {
            eprintln!(
                "usage: cargo xtask bench trace [EVENTS] | races [ROUNDS] [KERNEL…] | programs [ROUNDS] [NAME…] | tsan [RUNS] | confirm [--quick] [PROGRAM…] | campaigns [KILLS] [ROUNDS] | real [NAME…] |"
            );
            eprintln!(
                "       noninterference [ROUNDS] [KERNEL…] | noninterference passes [MILLIONS] | specs | spmd [ROUNDS] [KERNEL…] | spmd [ROUNDS] --sampling [KERNEL…] | spmd --growth | spmd --store | discipline [ROUNDS] | determinism [PROGRAM…] | ndseq [PROGRAM…] | ndseq recording [KERNEL…] | ndseq growth [MILLIONS]"
            );
            std::process::ExitCode::from(2)
        }
    }
}
