//! What haul would do, has done, and measures: plans, engines, movers, calibration.

use crate::error::{check, Code, Error};
use std::any::Any;
use std::mem::{size_of, zeroed};
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// What the planner would do with a request: [`Request::explain`](crate::Request::explain).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Plan {
    /// Pieces the request is cut into.
    pub chunks: u32,
    /// Bytes of the largest.
    pub chunk_bytes: u64,
    /// Ordinary requests of fewer bytes are the caller's; `u64::MAX`: all.
    pub inline_below_bytes: u64,
    /// Copies from here on are the mover's; `u64::MAX`: none.
    pub mover_from_bytes: u64,
    /// SCNI, MCNI, SCI or MCI.
    pub scheme: String,
    /// caller, thread or service.
    pub mover: String,
    /// The engine's name, as [`engines()`] has it.
    pub engine: String,
    /// One sentence each.
    pub reasons: Vec<String>,
}

/// # Safety
/// What the request names is valid.
pub(crate) unsafe fn plan_of(request: &haul_sys::haul_request) -> Result<Plan, Error> {
    // SAFETY: numbers and arrays of them.
    let mut plan: haul_sys::haul_plan = unsafe { zeroed() };
    plan.size = size_of::<haul_sys::haul_plan>() as u32;
    // SAFETY: the request is the caller's; `plan` is written as far as its size says.
    check(unsafe { haul_sys::haul_explain(request, &mut plan) })?;
    let count = (plan.reason_count as usize).min(plan.reasons.len());
    Ok(Plan {
        chunks: plan.chunks,
        chunk_bytes: plan.chunk_bytes,
        inline_below_bytes: plan.inline_below_bytes,
        mover_from_bytes: plan.mover_from_bytes,
        scheme: text(&plan.scheme),
        mover: text(&plan.mover),
        engine: text(&plan.engine),
        reasons: plan.reasons[..count].iter().map(|reason| text(reason)).collect(),
    })
}

/// One engine: what moves bytes.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Engine {
    /// Can it be used here?
    pub available: bool,
    /// Its name.
    pub name: String,
    /// What it reaches, in words.
    pub spaces: String,
    /// "ready", or why not and what to do about it.
    pub status: String,
    /// Pieces that it has moved for this process.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All engines that this libhaul knows.
///
/// ```
/// for engine in haul::engines() {
///     println!("{}: {}", engine.name, engine.status);
/// }
/// assert!(haul::engines().iter().any(|engine| engine.name == "cpu" && engine.available));
/// ```
pub fn engines() -> Vec<Engine> {
    let engine = |index| {
        // SAFETY: numbers and arrays of them.
        let mut info: haul_sys::haul_engine_info = unsafe { zeroed() };
        info.size = size_of::<haul_sys::haul_engine_info>() as u32;
        // SAFETY: `info` is written as far as its size says.
        (unsafe { haul_sys::haul_engine(index, &mut info) } == 0).then(|| Engine {
            available: info.available == 1,
            name: text(&info.name),
            spaces: text(&info.spaces),
            status: text(&info.status),
            chunks: info.chunks,
            bytes: info.bytes,
        })
    };
    (0..).map_while(engine).collect()
}

/// What the mover of this process does.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mover {
    /// There is none yet.
    NoneYet,
    /// It looks for work.
    Awake,
    /// It sleeps until there is some.
    Asleep,
    /// Another process has the core.
    Refused,
    /// None can run here.
    Impossible,
}

/// What this process has of the node's service.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Service {
    /// Its pid; `None` if it is not attached.
    pub pid: Option<u32>,
    /// Does it look for work?
    pub awake: bool,
    /// Chunks that it has moved for this process.
    pub chunks: u64,
    /// One sentence: attached to which, or why not.
    pub status: String,
}

/// This process's movers and counters.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct State {
    /// What the mover does.
    pub mover: Mover,
    /// The leased core; `None` without one, or where it is not pinned.
    pub mover_cpu: Option<u32>,
    /// One sentence about the mover.
    pub mover_status: String,
    /// Rings in use.
    pub threads: u32,
    /// Requests of threads that have a ring.
    pub submitted: u64,
    /// Those that the caller ran.
    pub inlined: u64,
    /// Those that were given to a mover.
    pub dedicated: u64,
    /// Chunks that waiters have taken.
    pub helped_chunks: u64,
    /// Chunks that movers have taken.
    pub moved_chunks: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Failures of dedicated ones that nobody has asked for.
    pub unobserved: u64,
    /// Between caller and mover core, in nanoseconds; 0 before it was measured.
    pub round_trip_ns: u64,
    /// The node's service.
    pub service: Service,
}

/// This process's movers and counters, as they are now.
///
/// ```
/// let state = haul::query()?;
/// println!("{:?}: {}", state.mover, state.mover_status);
/// # Ok::<(), haul::Error>(())
/// ```
pub fn query() -> Result<State, Error> {
    // SAFETY: numbers and arrays of them.
    let mut state: haul_sys::haul_state = unsafe { zeroed() };
    state.size = size_of::<haul_sys::haul_state>() as u32;
    // SAFETY: `state` is written as far as its size says.
    check(unsafe { haul_sys::haul_query(&mut state) })?;
    Ok(State {
        mover: match state.mover_state {
            0 => Mover::NoneYet,
            1 => Mover::Awake,
            2 => Mover::Asleep,
            3 => Mover::Refused,
            _ => Mover::Impossible,
        },
        mover_cpu: u32::try_from(state.mover_cpu).ok(),
        mover_status: text(&state.mover_status),
        threads: state.threads,
        submitted: state.submitted,
        inlined: state.inlined,
        dedicated: state.dedicated,
        helped_chunks: state.helped_chunks,
        moved_chunks: state.moved_chunks,
        failed: state.failed,
        unobserved: state.unobserved,
        round_trip_ns: state.round_trip_ns,
        service: Service {
            pid: u32::try_from(state.service_pid).ok(),
            awake: state.service_state == 1,
            chunks: state.service_chunks,
            status: text(&state.service_status),
        },
    })
}

/// Wakes (or starts) the mover ahead of a burst. False: another process leases the core.
///
/// ```
/// match haul::wake() {
///     Ok(true) => println!("the next copies go to the mover"),
///     Ok(false) => println!("another process has the core"),
///     Err(error) => println!("no mover: {error}"),
/// }
/// ```
pub fn wake() -> Result<bool, Error> {
    // SAFETY: no requirements.
    match check(unsafe { haul_sys::haul_wake() }) {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Code::Again => Ok(false),
        Err(error) => Err(error),
    }
}

/// Calibrates in the foreground, for a fraction of a second, and stores the figures for later processes. `progress` is
/// called with 0 to 100.
///
/// ```no_run
/// haul::tune(|percent| println!("{percent} %"))?;
/// # Ok::<(), haul::Error>(())
/// ```
pub fn tune<F: FnMut(u32)>(progress: F) -> Result<(), Error> {
    struct Called<F> {
        progress: F,
        panic: Option<Box<dyn Any + Send>>,
    }
    unsafe extern "C" fn call<F: FnMut(u32)>(percent: c_int, context: *mut c_void) {
        // SAFETY: what tune() passes, and nobody else uses meanwhile.
        let called = unsafe { &mut *context.cast::<Called<F>>() };
        // A panic may not pass through C: it goes on when haul_tune() has returned.
        if called.panic.is_none() {
            let percent = u32::try_from(percent).unwrap_or(0);
            called.panic = catch_unwind(AssertUnwindSafe(|| (called.progress)(percent))).err();
        }
    }
    let mut called = Called { progress, panic: None };
    // SAFETY: `call` is called during the call alone, on this thread.
    let result = check(unsafe { haul_sys::haul_tune(Some(call::<F>), (&mut called as *mut Called<F>).cast()) });
    match called.panic {
        Some(panic) => resume_unwind(panic),
        None => result.map(drop),
    }
}

/// A string of C in an array.
fn text(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
