//! A simulation keeps a checkpoint of its state while it computes the next one. Rounds with `copy_from_slice()` before
//! the step and rounds with haul beside it take turns; what is printed is the ratio of their times, and every
//! checkpoint is checked.
//!
//!     cargo run --release --example checkpoint [MEBIBYTES [ROUNDS]]

use std::process::exit;
use std::time::{Duration, Instant};

/// One step of heat along a rod, as often as it takes to be some work: reads `now`, writes `next`.
fn step(now: &[f64], next: &mut [f64]) {
    let last = now.len() - 1;
    next[0] = now[0];
    next[last] = now[last];
    for (place, around) in next[1..last].iter_mut().zip(now.windows(3)) {
        let mut heat = around[1];
        for _ in 0..4 {
            heat += 0.2 * (around[0] - 2.0 * heat + around[2]);
        }
        *place = heat;
    }
}

fn copied_first(now: &[f64], next: &mut [f64], checkpoint: &mut [f64]) -> Duration {
    let begin = Instant::now();
    checkpoint.copy_from_slice(now);
    step(now, next);
    begin.elapsed()
}

fn copied_meanwhile(now: &[f64], next: &mut [f64], checkpoint: &mut [f64]) -> Result<Duration, haul::Error> {
    let begin = Instant::now();
    haul::scope(|s| {
        s.copy(checkpoint, now);
        step(now, next); // reads what is copied, and writes elsewhere
    })?; // here the checkpoint is complete
    Ok(begin.elapsed())
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn arguments() -> Option<(usize, usize)> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Some(default), |text| text.parse().ok().filter(|&n| n > 0));
    Some((number(16)?, number(50)?))
}

fn main() -> Result<(), haul::Error> {
    let (mebibytes, rounds) = arguments().unwrap_or_else(|| {
        eprintln!("usage: checkpoint [MEBIBYTES [ROUNDS]], numbers from 1 on");
        exit(2)
    });

    let mut now: Vec<f64> = (0..mebibytes << 17).map(|place| (place % 1000) as f64).collect();
    let mut next = now.clone();
    let mut checkpoint = vec![0.0; now.len()];
    if let Err(error) = haul::wake() {
        println!("no core beside this one can copy: {error}");
    }

    let (mut ratios, mut plain, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let first = copied_first(&now, &mut next, &mut checkpoint);
        assert_eq!(checkpoint, now, "the checkpoint of copy_from_slice()");
        std::mem::swap(&mut now, &mut next);
        let meanwhile = copied_meanwhile(&now, &mut next, &mut checkpoint)?;
        assert_eq!(checkpoint, now, "the checkpoint of haul");
        std::mem::swap(&mut now, &mut next);
        if round > 0 {
            ratios.push(meanwhile.as_secs_f64() / first.as_secs_f64());
            plain.push(first.as_secs_f64() * 1e3);
            hidden.push(meanwhile.as_secs_f64() * 1e3);
        }
    }
    let [low, middle, high] = quartiles(ratios);
    println!("a step and its checkpoint of {mebibytes} MiB, median of {rounds} rounds that took turns:");
    println!("  copy_from_slice(), then the step  {:8.3} ms", quartiles(plain)[1]);
    println!("  haul, beside the step             {:8.3} ms", quartiles(hidden)[1]);
    println!("  ratio                             {middle:8.3}    (quartiles {low:.3} to {high:.3})");
    println!("every checkpoint was compared with the state: equal");
    Ok(())
}
