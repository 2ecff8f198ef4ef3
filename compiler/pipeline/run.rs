//! The one loop over the stage list: runs each stage that the options ask for, times it, and tells the observers.
//!
//! Stages that work on one function at a time may have their functions worked on by several threads; the results are
//! put together by function number, so that the output does not depend on the threads. Everything runs on threads with
//! large stacks, as the depth of nesting in a source is bounded but not small. A panic inside a stage becomes an
//! [`Internal`] that names the stage and the function.
//!
//! **In:** a source, options, and the name of the last stage wanted. **Out:** the program as that stage leaves it.
//! Cost: that of the stages.

use super::observe::{Event, Observer, Verifying};
use super::options::Options;
use super::stages::{self, Stage, Step};
use super::state::State;
use crate::emit;
use crate::ir::Form;
use crate::opt::{drop_functions, fuel::Fuel};
use crate::ssa::OutOfSsa;
use crate::support::diagnostics::Diagnostic;
use crate::support::internal::Internal;
use crate::support::span::Source;
use cranelift_entity::{EntityRef, PrimaryMap};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::time::Instant;

/// Why a compilation ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The source has no meaning.
    Source(Vec<Diagnostic>),
    /// An invariant of the compiler broke.
    Internal(Internal),
    /// A stage cannot do its work for a reason outside of both, in a sentence: linking.
    Stage(String),
    /// The program has no conventional SSA form, which renaming needs: where versions overlap.
    NotConventional(String),
}

impl From<Internal> for Failure {
    fn from(internal: Internal) -> Failure {
        Failure::Internal(internal)
    }
}

/// A program as the last stage left it.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub state: State,
    /// What is probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// What a stage may look at besides the program.
pub struct Context<'a> {
    /// The source.
    pub source: &'a Source,
    /// The user's choices.
    pub options: &'a Options,
    /// Where stages leave warnings.
    pub warnings: RefCell<Vec<Diagnostic>>,
    /// How many changes optimization may still make.
    pub fuel: RefCell<Fuel>,
}

/// Enough for the recursion that bounded nesting allows. The system gives the memory only where it is used.
const STACK: usize = 256 << 20;

/// Below so many instructions, starting threads costs more than they save.
const WORTH_THREADS: usize = 4_000;

/// Compiles as far as the stage named `until`.
///
/// # Panics
/// If there is no such stage.
pub fn compile(
    source: &Source,
    options: &Options,
    until: &str,
    observers: &mut [&mut dyn Observer],
) -> Result<Compiled, Failure> {
    let last = stages::position(until).unwrap_or_else(|| panic!("there is no stage `{until}`"));
    quiet_panics();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("atlc".to_string()).stack_size(STACK);
        let work = || catch(|| run(source, options, last, observers));
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => match thread.join() {
                Ok(Ok(result)) => result,
                Ok(Err(message)) => Err(Failure::Internal(Internal::new("", message))),
                Err(_) => Err(Failure::Internal(Internal::new("", "the compiling thread ended without a result"))),
            },
            Err(error) => Err(Failure::Stage(format!("cannot start a thread: {error}"))),
        }
    })
}

fn run(
    source: &Source,
    options: &Options,
    last: usize,
    observers: &mut [&mut dyn Observer],
) -> Result<Compiled, Failure> {
    let fuel = options.opt_limit.map_or(Fuel::UNLIMITED, Fuel::new);
    let context = Context { source, options, warnings: RefCell::new(Vec::new()), fuel: RefCell::new(fuel) };
    let mut verifying = (options.verify || cfg!(debug_assertions)).then(Verifying::new);
    let (mut state, first) = start(&context)?;
    let last_ssa = stages::last_ssa(options);
    for stage in &stages::all()[first..=last.max(first.saturating_sub(1))] {
        if !stage.wanted(options) || stage.from != state.language() {
            continue;
        }
        if let Some(verifying) = &mut verifying {
            verifying.before(stage, &state);
        }
        observers.iter_mut().for_each(|observer| observer.before(stage, &state));
        let begin = Instant::now();
        let (next, changes) = run_stage(stage, state, &context)?;
        let elapsed = begin.elapsed();
        state = next;
        let last_ssa = stage.name == last_ssa;
        let event = Event { stage, state: &state, source, elapsed, changes, last_ssa };
        if let Some(verifying) = &mut verifying {
            let checked = catch(|| verifying.after(&event)).unwrap_or_else(|message| Err(Internal::new("", message)));
            checked.map_err(|internal| internal.in_stage(stage.name))?;
        }
        observers.iter_mut().for_each(|observer| observer.after(&event));
    }
    Ok(Compiled { state, warnings: context.warnings.into_inner() })
}

/// The state that the source is in, and the first stage that may run: IR text starts at the form that it is in.
fn start(context: &Context<'_>) -> Result<(State, usize), Failure> {
    if !context.source.name.ends_with(".ir") {
        return Ok((State::Source, 0));
    }
    let program = catch(|| crate::ir::parse::parse(context.source))
        .map_err(|message| Internal::new("", message).in_stage("ir"))?
        .map_err(Failure::Source)?;
    if let Err(internal) = crate::ir::verify::verify(&program) {
        return Err(Failure::Stage(format!("`{}` is not valid IR: {internal}", context.source.name)));
    }
    let form = program.functions[program.entry].form;
    let method = context.options.out_of_ssa;
    let fits = match form {
        Form::Variables | Form::Ssa | Form::Sequenced => true,
        Form::SplitSsa => method == OutOfSsa::Split,
        Form::ParallelCopies => method != OutOfSsa::Rename,
    };
    if !fits {
        let (name, form, method) = (&context.source.name, form.name(), method.name());
        let message = format!("`{name}` is in the form `{form}`, from which `--out-of-ssa {method}` does not start");
        return Err(Failure::Stage(message));
    }
    let state = State::Ir(program);
    let language = state.language();
    let first = stages::all().iter().position(|stage| stage.from == language);
    Ok((state, first.expect("some stage starts from each form of the IR")))
}

/// Runs one stage, and gives what it changed if it counts that.
fn run_stage(stage: &Stage, state: State, context: &Context<'_>) -> Result<(State, Option<usize>), Failure> {
    let whole = |message: String| Failure::Internal(Internal::new("", message).in_stage(stage.name));
    let (state, changes) = match (&stage.step, state) {
        (Step::Program(step), state) => (catch(|| step(state, context)).map_err(whole)??, None),
        (Step::Optimize(pass), State::Ir(mut program)) => {
            let changes = catch(|| pass(&mut program, &mut context.fuel.borrow_mut())).map_err(whole)?;
            (State::Ir(program), Some(changes))
        }
        (Step::DropFunctions, State::Ir(mut program)) => {
            let changes = catch(|| drop_functions::run(&mut program)).map_err(whole)?;
            (State::Ir(program), Some(changes))
        }
        (Step::IrFunction(pass), State::Ir(mut program)) => {
            let name = |function: &crate::ir::Function| function.name.clone();
            let size = |function: &crate::ir::Function| function.insts.len();
            let changes = each_mut(&mut program.functions, context.options, size, name, |function| {
                Ok(pass(function, context.options))
            });
            let changes = changes.map_err(|internal| internal.in_stage(stage.name))?;
            (State::Ir(program), Some(changes.into_iter().sum()))
        }
        (Step::MachineFunction(pass), State::Physical(mut program, facts)) => {
            let name = |function: &crate::x64::Function<crate::x64::PReg>| function.name.clone();
            let size = |function: &crate::x64::Function<crate::x64::PReg>| {
                function.blocks.values().map(|block| block.insts.len()).sum()
            };
            let changes = each_mut(&mut program.functions, context.options, size, name, |function| Ok(pass(function)));
            let changes = changes.map_err(|internal| internal.in_stage(stage.name))?;
            (State::Physical(program, facts), Some(changes.into_iter().sum()))
        }
        (Step::Optimize(_) | Step::DropFunctions | Step::IrFunction(_) | Step::MachineFunction(_), state) => {
            return Err(whole(format!("the stage list puts it behind {:?}", state.language())));
        }
    };
    let language = state.language();
    if language != stage.to {
        return Err(whole(format!("it was to give {:?} and gave {language:?}", stage.to)));
    }
    Ok((state, changes))
}

/// Works on every function of a map, on several threads if that is worth it. Results are by function number; so is the
/// error, if there are several.
pub fn each_mut<K: EntityRef, F: Send, R: Send>(
    functions: &mut PrimaryMap<K, F>,
    options: &Options,
    size: impl Fn(&F) -> usize,
    name: impl Fn(&F) -> String + Sync,
    work: impl Fn(&mut F) -> Result<R, Internal> + Sync,
) -> Result<Vec<R>, Internal> {
    let one = |function: &mut F| {
        let name = name(function);
        let result = catch(|| work(function)).unwrap_or_else(|message| Err(Internal::new("", message)));
        result.map_err(|internal| internal.in_function(&name))
    };
    let sizes: Vec<usize> = functions.values().map(size).collect();
    let threads = threads(options, &sizes);
    if threads == 1 {
        return functions.values_mut().map(one).collect();
    }
    let jobs: Vec<Mutex<Job<'_, F, R>>> =
        functions.values_mut().map(|function| Mutex::new(Job { function, result: None })).collect();
    let next = AtomicUsize::new(0);
    in_parallel(threads, || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut job = job.lock().expect("a job is taken once");
            let result = one(job.function);
            job.result = Some(result);
        }
    });
    jobs.into_iter()
        .map(|job| job.into_inner().expect("a job does not panic").result.expect("every job is done"))
        .collect()
}

/// Makes something of every function of a map, as [`each_mut`] does.
pub fn each<K: EntityRef + Send + Sync, F: Sync, R: Send>(
    functions: &PrimaryMap<K, F>,
    options: &Options,
    size: impl Fn(&F) -> usize,
    name: impl Fn(&F) -> String + Sync,
    work: impl Fn(K, &F) -> Result<R, Internal> + Sync,
) -> Result<PrimaryMap<K, R>, Internal> {
    let mut jobs: PrimaryMap<K, (K, &F)> = PrimaryMap::with_capacity(functions.len());
    for (id, function) in functions.iter() {
        jobs.push((id, function));
    }
    let results = each_mut(&mut jobs, options, |job| size(job.1), |job| name(job.1), |job| work(job.0, job.1))?;
    Ok(results.into_iter().collect())
}

/// A function to be worked on, and what came of it.
struct Job<'a, F, R> {
    function: &'a mut F,
    result: Option<Result<R, Internal>>,
}

fn threads(options: &Options, sizes: &[usize]) -> usize {
    let total: usize = sizes.iter().sum();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    // What the largest function leaves for the others to do meanwhile.
    if total - largest < WORTH_THREADS {
        return 1;
    }
    let cores = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, |count| count.get()),
        count => count,
    };
    cores.min(sizes.len()).min(1 + (total - largest) / WORTH_THREADS)
}

fn in_parallel(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // A thread that cannot be started leaves its share to the others.
            let _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &work);
        }
        work();
    });
}

thread_local! {
    /// Is a stage running on this thread, so that a panic is caught and reported?
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic of this thread was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `work`; a panic becomes its message, with the place in the compiler's source.
fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    result.map_err(|payload| {
        let place = PLACE.take();
        let text = panic_text(payload.as_ref());
        if place.is_empty() { text } else { format!("{text} [{place}]") }
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without a message".to_string(),
    }
}

/// Panics inside stages are reported as internal errors, not by the usual message; those outside are left as they were.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
                PLACE.replace(place.unwrap_or_default());
            } else {
                usual(info);
            }
        }));
    });
}

/// What is linked into an executable: the program's object and the runtime.
pub fn link_inputs(object: &[u8]) -> [emit::link::Input<'_>; 2] {
    [emit::link::Input { name: "program", bytes: object }, emit::link::Input { name: "runtime", bytes: emit::RUNTIME }]
}

/// Links the program's object with the runtime.
pub fn link_object(object: &[u8]) -> Result<Vec<u8>, Failure> {
    emit::link::link(&link_inputs(object)).map_err(|error| Failure::Stage(format!("linking failed: {error}")))
}
