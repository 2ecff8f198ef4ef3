//! Goes through seeds: each is a random source program, every fourth also a random program of IR, compiled at each level in
//! one of the ways that [`Config::of_seed`] rotates through, or in all, run and compared by [`examine`].
//!
//! Seeds are independent, so that threads and machines can share a range, and a campaign goes on where another stopped. What is
//! found is reduced by the same check before it is told.
//!
//! **in**: a range of seeds. **out**: findings, and counts, through a callback. Cost: some milliseconds a seed.

use super::examine::{self, Config, Fault, Kind};
use super::{generate, reduce, reduce_ir};
use crate::execution::Limits;
use crate::ir;
use crate::ssa::OutOfSsa;
use crate::support::random::Random;
use crate::support::span::Source;
use crate::verify::Shown;
use crate::verify::native::Runner;
use serde::Serialize;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Threads.
    pub jobs: u32,
    /// When to stop at the latest.
    pub until: Option<Instant>,
    /// A C compiler to compare with.
    pub against: Option<String>,
    /// Compile each program in every way, not in one for each level.
    pub every_way: bool,
    /// Make findings small.
    pub reduce: bool,
}

/// Something that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What is wrong.
    pub kind: Kind,
    /// The flags with which it is wrong.
    pub flags: String,
    /// What was expected and what was found.
    pub message: String,
    /// `atl` or `ir`.
    pub language: &'static str,
    /// The program.
    pub program: String,
    /// Its input.
    pub input: String,
    /// A small program of which the same is wrong.
    pub reduced: Option<String>,
}

/// How far a campaign has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Seeds that are done.
    pub seeds: u64,
    /// Random programs, of source and of IR.
    pub programs: u64,
    /// Compilations, each compared.
    pub compilations: u64,
    /// Findings.
    pub findings: u64,
    /// All seeds below this one are done.
    pub next_seed: u64,
}

/// What happens.
pub enum Event<'a> {
    /// A seed is done.
    Done(Counts),
    /// Something was found.
    Found(&'a Finding),
}

/// Runs a campaign. Events come from several threads, one at a time.
pub fn run(settings: &Settings, tell: &(dyn Fn(Event<'_>) + Sync)) -> io::Result<Counts> {
    let next = AtomicU64::new(settings.seeds.start);
    let failed: Mutex<Option<io::Error>> = Mutex::new(None);
    let stopped = AtomicBool::new(false);
    let counts = Mutex::new((Counts { next_seed: settings.seeds.start, ..Counts::default() }, Vec::<u64>::new()));
    let work = || {
        let runner = match Runner::new() {
            Ok(runner) => runner,
            Err(error) => {
                *failed.lock().expect("no thread panics here") = Some(error);
                stopped.store(true, Ordering::Relaxed);
                return;
            }
        };
        while !stopped.load(Ordering::Relaxed) && settings.until.is_none_or(|until| Instant::now() < until) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= settings.seeds.end {
                return;
            }
            let (one, findings) = run_seed(seed, settings, &runner);
            let mut guard = counts.lock().expect("no thread panics here");
            let (counts, waiting) = &mut *guard;
            counts.seeds += 1;
            counts.programs += one.programs;
            counts.compilations += one.compilations;
            counts.findings += findings.len() as u64;
            waiting.push(seed);
            while let Some(place) = waiting.iter().position(|seed| *seed == counts.next_seed) {
                waiting.swap_remove(place);
                counts.next_seed += 1;
            }
            findings.iter().for_each(|finding| tell(Event::Found(finding)));
            tell(Event::Done(*counts));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs {
            let thread = std::thread::Builder::new().stack_size(64 << 20);
            if let Err(error) = thread.spawn_scoped(scope, work) {
                *failed.lock().expect("no thread panics here") = Some(error);
            }
        }
    });
    match failed.into_inner().expect("no thread panics here") {
        Some(error) => Err(error),
        None => Ok(counts.into_inner().expect("no thread panics here").0),
    }
}

/// The input of a seed's programs: numbers, sometimes with something else among them.
pub fn input(seed: u64) -> String {
    let mut random = Random::new(seed ^ 0x1A9D);
    let mut input = String::new();
    for _ in 0..random.below(12) {
        if random.chance(2) {
            input.push_str("12x ");
        } else {
            input.push_str(&format!("{}{}", random.integer(), random.pick(&[" ", "\n", "\t ", "  "])));
        }
    }
    input
}

/// A random program of IR, as text.
pub fn random_ir(seed: u64) -> String {
    use ir::random::Shape;
    let mut shape = match seed / 4 % 4 {
        0 => Shape::default(),
        1 => Shape::webs(),
        2 => Shape::pressure(),
        _ => Shape::tiny(),
    };
    let mut random = Random::new(seed ^ 0x12);
    shape.traps = random.chance(25);
    shape.input = random.chance(25);
    let listing = ir::print::print(&ir::random::generate(seed, &shape));
    listing.lines().map(|line| line.text() + "\n").collect()
}

fn run_seed(seed: u64, settings: &Settings, runner: &Runner) -> (Counts, Vec<Finding>) {
    let mut counts = Counts::default();
    let mut findings = Vec::new();
    let input = input(seed);
    let shape = generate::Shape::of_seed(seed);
    let mut programs = vec![("atl", Source::new(format!("{seed}.atl"), generate::generate(seed, &shape)))];
    if seed.is_multiple_of(4) {
        programs.push(("ir", Source::new(format!("{seed}.ir"), random_ir(seed))));
    }
    for (language, source) in programs {
        let mut tell = |flags: String, fault: Fault, reduced: Option<String>| {
            findings.push(Finding {
                seed,
                kind: fault.kind,
                flags,
                message: fault.message,
                language,
                program: source.text.clone(),
                input: input.clone(),
                reduced,
            });
        };
        let reference = match guarded(|| examine::reference(&source, input.as_bytes(), examine::REFERENCE)) {
            Ok(reference) if reference.is_cut() => continue, // It takes long, and is not counted.
            Ok(reference) => reference,
            Err(fault) => {
                tell(String::new(), fault, None);
                continue;
            }
        };
        counts.programs += 1;
        let configs = if settings.every_way { Config::all(seed) } else { Config::of_seed(seed) };
        for mut config in configs {
            // Random IR is in SSA form already, which renaming may refuse.
            if language == "ir" && config.out_of_ssa == OutOfSsa::Rename {
                config.out_of_ssa = OutOfSsa::Isolate;
            }
            counts.compilations += 1;
            let against = settings.against.as_deref();
            let run = |source: &Source, reference: &Shown| {
                guarded(|| examine::run(source, input.as_bytes(), reference, &config, runner, against))
            };
            if let Err(fault) = run(&source, &reference) {
                let reduced = settings.reduce.then(|| {
                    shrink(&source, fault.kind, |candidate| {
                        // Dropping a statement often makes a loop endless; that is not worth many steps.
                        let limits = Limits { steps: 200_000, ..examine::REFERENCE };
                        let reference = guarded(|| examine::reference(candidate, input.as_bytes(), limits))?;
                        // One that takes long tells little.
                        if reference.is_cut() { Ok(()) } else { run(candidate, &reference) }
                    })
                });
                tell(config.flags(), fault, reduced);
                break;
            }
        }
    }
    (counts, findings)
}

/// The smallest program found of which the same kind of thing is wrong.
fn shrink(source: &Source, kind: Kind, mut examine: impl FnMut(&Source) -> Result<(), Fault>) -> String {
    const TRIES: usize = 3_000;
    let name = source.name.clone();
    let mut holds = |text: &str| {
        let candidate = Source::new(name.clone(), text);
        examine(&candidate).is_err_and(|fault| fault.kind == kind)
    };
    let run = if source.name.ends_with(".ir") { reduce_ir::run } else { reduce::run };
    run(&source.text, TRIES, &mut holds).map_or(source.text.clone(), |reduced| reduced.text)
}

/// A panic outside of the pipeline, which catches its own, is a fault too.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_string()));
        Err(Fault { kind: Kind::Internal, message: format!("panic: {}", text.unwrap_or_default()) })
    })
}
