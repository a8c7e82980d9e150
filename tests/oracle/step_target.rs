// SPDX-License-Identifier: Apache-2.0
// What step_oracle steps through of Rust, between two int3: closures, iterators, trait objects, formatting, a caught panic.
use std::arch::asm;
use std::hint::black_box;

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Circle(u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> u64 {
        black_box(self.0) * 3
    }
}

#[inline(never)]
fn recurse(depth: u64, f: &dyn Fn(u64) -> u64) -> u64 {
    if depth == 0 {
        f(1)
    } else {
        f(depth) + recurse(depth - 1, f) + black_box(depth)
    }
}

#[inline(never)]
fn collect(n: u64) -> String {
    let mut list: Vec<u64> = (0..n).map(|x| (x * 7919) % 13).collect();
    list.sort();
    format!("{:?} {}", list, list.len())
}

#[inline(never)]
fn panics(value: u64) -> u64 {
    if value > 3 {
        panic!("{}", value);
    }
    value
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let add = black_box(5u64);
    unsafe { asm!("int3") };
    let shapes: [Box<dyn Shape>; 2] = [Box::new(Square(add)), Box::new(Circle(add))];
    let total: u64 = shapes.iter().map(|shape| shape.area()).sum();
    let deep = recurse(6, &|x| x + add);
    let text = collect(9);
    let caught = std::panic::catch_unwind(|| panics(black_box(7))).is_err();
    black_box((total, deep, text, caught));
    unsafe { asm!("int3") };
}
