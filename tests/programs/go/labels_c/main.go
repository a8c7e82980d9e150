// SPDX-License-Identifier: Apache-2.0

// labels_c SECONDS: a goroutine with labels of runtime/pprof that calls C, which spins, and one whose C calls Go back. Lines as of the program labels;
// the functions are those that the compiler makes for calls of C.
package main

/*
#cgo CFLAGS: -O1 -fno-omit-frame-pointer

extern void goCallback(void);

static __attribute__((noinline, noipa)) unsigned long c_leaf(unsigned long state)
{
	for (int i = 0; i < 1000000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return state;
}

static __attribute__((noinline, noipa)) void c_calls_back(void)
{
	goCallback();
	__asm__ volatile("");
}
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"time"
)

var (
	until time.Time
	sink  C.ulong
)

//go:noinline
func leaf(state uint64) uint64 {
	for i := 0; i < 1000000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//export goCallback
func goCallback() { sink += C.ulong(leaf(7)) }

//go:noinline
func inC(context.Context) {
	for state := C.ulong(1); time.Now().Before(until); {
		state = C.c_leaf(state)
	}
}

//go:noinline
func throughC(context.Context) {
	for time.Now().Before(until) {
		C.c_calls_back()
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	until = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	fmt.Println("labels main._Cfunc_c_leaf where=in C")
	fmt.Println("labels main._Cfunc_c_calls_back where=in Go again")
	go pprof.Do(context.Background(), pprof.Labels("where", "in C"), inC)
	go pprof.Do(context.Background(), pprof.Labels("where", "in Go again"), throughC)
	time.Sleep(200 * time.Millisecond)
	fmt.Printf("pid %d\nready\n", os.Getpid())
	time.Sleep(time.Until(until))
}
