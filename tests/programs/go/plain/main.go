// SPDX-License-Identifier: Apache-2.0

// plain SECONDS: goes from one kind of code to the next, each for a while. A line "chain NAME main;...;leaf" for each, root to leaf: up to the function that calls the
// innermost one by runtime.Callers, that one by name, because what is measured there must not have a frame of its own, or is no Go.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	_ "unsafe" // for go:linkname
)

const (
	turn  = 30 * time.Millisecond
	steps = 200000 // of a leaf between two looks at the clock
)

var (
	sink   uint64
	known  = map[string]bool{}
	onSpin func()
)

// The chain of the function that calls this, and what it is about to call. Once per name.
func tell(name string, callees ...string) {
	if known[name] {
		return
	}
	known[name] = true
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	names := []string{}
	for {
		frame, more := frames.Next()
		names = append([]string{frame.Function}, names...)
		if !more {
			break
		}
	}
	fmt.Printf("chain %s %s\n", name, strings.Join(append(names, callees...), ";"))
}

//go:noinline
func frameless(state uint64) uint64 {
	for i := 0; i < steps; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//go:noinline
func callsFrameless(until time.Time) {
	tell("frameless", "main.frameless")
	for time.Now().Before(until) {
		sink += frameless(sink | 1)
	}
}

//go:noinline
func withFrame(state uint64, depth int) uint64 {
	var room [64]uint64
	if depth > 0 {
		return withFrame(state+1, depth-1) + 1
	}
	tell("deep")
	for i := 0; i < steps; i++ {
		room[state&63] += state
		state = state*6364136223846793005 + room[(state>>7)&63] + 1
	}
	return state
}

func spinAsm(steps int)   // has no frame
func spinFrame(steps int) // has one, and calls spinAsm

//go:noinline
func callsAssembly(until time.Time) {
	tell("asm", "main.spinAsm")
	tell("asmframe", "main.spinFrame", "main.spinAsm")
	for time.Now().Before(until) {
		spinAsm(steps)
		spinFrame(steps)
	}
}

//go:linkname systemstack runtime.systemstack
func systemstack(fn func())

//go:nosplit
//go:noinline
func systemSpin() {
	state := sink | 1
	for i := 0; i < steps; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	sink = state
}

//go:nosplit
//go:noinline
func systemBody() {
	systemSpin()
	sink++
}

//go:noinline
func callsSystemstack(until time.Time) {
	tell("systemstack", "runtime.systemstack", "main.systemBody", "main.systemSpin")
	for time.Now().Before(until) {
		systemstack(onSpin)
	}
}

func inlinedInner(state uint64) uint64 {
	for i := 0; i < steps; i++ { // LINE inner
		state = state*3 + 1 // LINE inner
	}
	return state
}

func inlinedMiddle(state uint64) uint64 {
	return inlinedInner(state) + 1 // LINE middle
}

//go:noinline
func callsInlined(until time.Time) {
	tell("inlined", "main.inlinedMiddle", "main.inlinedInner")
	for time.Now().Before(until) {
		sink += inlinedMiddle(sink) // LINE outer
	}
}

//go:noinline
func readsClock(until time.Time) {
	tell("clock")
	for time.Now().Before(until) {
	}
}

//go:noinline
func grow(depth int) uint64 {
	var room [512]byte
	room[depth&511] = 1
	if depth == 0 {
		return uint64(room[7])
	}
	return grow(depth-1) + uint64(room[depth&255])
}

// Each goroutine begins on a small stack, which is copied again and again as it grows.
//
//go:noinline
func grows(until time.Time) {
	for time.Now().Before(until) {
		done := make(chan bool)
		go func() {
			sink += grow(1500)
			done <- true
		}()
		<-done
	}
}

//go:noinline
func allocates(until time.Time) {
	var list [64][]byte
	for i := 0; time.Now().Before(until); i++ {
		list[i&63] = make([]byte, 4096+i&8191)
	}
	sink += uint64(len(list[3]))
}

// Goroutines that do nothing but make room for each other: the scheduler's stack begins where one of them stands, and has left it when it runs the next.
//
//go:noinline
func yields(until time.Time) {
	done := make(chan bool)
	for i := 0; i < 2; i++ {
		go func() {
			for time.Now().Before(until) {
				runtime.Gosched()
			}
			done <- true
		}()
	}
	<-done
	<-done
}

//go:noinline
func worker(until time.Time, done chan bool) {
	tell("goroutine", "main.frameless")
	for time.Now().Before(until) {
		sink += frameless(sink | 1)
	}
	done <- true
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	turns := []func(until time.Time){callsFrameless, callsAssembly, callsSystemstack, callsInlined, readsClock, grows, allocates, yields}
	onSpin = systemBody
	fmt.Printf("pid %d\n", os.Getpid())
	for isReady := false; time.Now().Before(end); isReady = true {
		for _, next := range turns {
			next(time.Now().Add(turn))
		}
		for until := time.Now().Add(turn); time.Now().Before(until); {
			sink += withFrame(sink|1, 20)
		}
		done := make(chan bool)
		go worker(time.Now().Add(turn), done)
		<-done
		if !isReady {
			fmt.Println("ready")
		}
	}
}
