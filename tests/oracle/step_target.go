// SPDX-License-Identifier: Apache-2.0

// What step_oracle steps through of Go, between two int3: leaves, closures, interfaces, maps, defer, the scheduler's stack. (Stacks that are copied or
// that a recover unwinds are no chain of calls: shadow.c could not follow.)
package main

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
)

type shape interface{ area() int }
type square struct{ side int }
type circle struct{ radius int }

//go:noinline
func (s square) area() int { return s.side * s.side }

//go:noinline
func (c circle) area() int { return c.radius * 3 }

//go:noinline
func leaf(x int) int { return x*3 + 1 }

//go:noinline
func recurse(depth int, f func(int) int) int {
	if depth == 0 {
		return f(1)
	}
	return f(depth) + recurse(depth-1, f) + leaf(depth)
}

//go:noinline
func grow(depth int) byte {
	var room [2048]byte // the stack is large enough from here on
	room[depth] = byte(depth)
	if depth == 0 {
		return room[0]
	}
	return grow(depth-1) + room[depth]
}

//go:noinline
func defers(value int) (result int) {
	defer func() { result += leaf(value) }()
	return recurse(value, leaf)
}

func main() {
	runtime.LockOSThread()
	add := len(strings.Repeat("x", 5)) + int(grow(50))
	runtime.Breakpoint()
	shapes := []shape{square{add}, circle{add}}
	total := 0
	for _, s := range shapes {
		total += s.area()
	}
	total += recurse(5, func(x int) int { return x + add })
	list := []int{5, 3, 9, 1}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	names := map[string]int{"one": 1, "two": 2}
	text := fmt.Sprintf("%v %d", list, names["two"])
	total += len(text) + defers(4)
	made := make([]byte, 100000+total)
	runtime.Breakpoint()
	runtime.KeepAlive(made)
}
