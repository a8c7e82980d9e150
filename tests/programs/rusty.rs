// SPDX-License-Identifier: Apache-2.0
// rusty SECONDS: Rust names, without frame pointers. Speaks the protocol of known.h.
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

mod garden {
    pub struct Bed<T> {
        pub plants: Vec<T>,
    }

    pub trait Grow {
        fn grow(&self, seconds: f64) -> u64;
    }

    impl Grow for Bed<u32> {
        #[inline(never)]
        fn grow(&self, seconds: f64) -> u64 {
            super::leaf(seconds) + self.plants.len() as u64
        }
    }
}

use garden::Grow;

#[inline(never)]
fn leaf(seconds: f64) -> u64 {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut state = 88172645463325252u64;
    println!("pid {}", std::process::id());
    println!("chain rusty rusty::main;rusty::visit;<rusty::garden::Bed<u32> as rusty::garden::Grow>::grow;rusty::leaf");
    println!("ready");
    std::io::stdout().flush().unwrap();
    loop {
        for _ in 0..50_000_000u32 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        if Instant::now() >= end {
            return black_box(state);
        }
    }
}

#[inline(never)]
fn visit(bed: &garden::Bed<u32>, seconds: f64) -> u64 {
    black_box(bed.grow(seconds)) + 1
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let bed = garden::Bed { plants: vec![1u32, 2, 3] };
    black_box(visit(black_box(&bed), seconds));
}
