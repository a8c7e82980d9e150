// SPDX-License-Identifier: Apache-2.0

// both SECONDS: Go calls C, which calls Go, which calls C again; and a thread of C's calls Go. A line "chain NAME ...;leaf" for each leaf: Go's frames by runtime.Callers,
// as Go sees them; where C is between them, tests/system/go.py knows.
package main

/*
#include <pthread.h>
#include <stdlib.h>

extern void goCallback(int depth);
extern void goOfThread(void);

static volatile unsigned long c_sink;
static volatile int c_done;

static __attribute__((noinline, noipa)) unsigned long c_leaf(unsigned long state)
{
	for (int i = 0; i < 200000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return state;
}

static __attribute__((noinline, noipa)) void c_spin(void)
{
	c_sink += c_leaf(c_sink | 1);
}

static __attribute__((noinline, noipa)) void c_inner(int depth)
{
	volatile char room[100];

	room[depth & 63] = 1;
	goCallback(depth);
	c_sink += room[depth & 31];
}

static __attribute__((noinline, noipa)) void c_outer(int depth)
{
	c_inner(depth);
	c_sink++;
}

static void *c_thread(void *arg)
{
	while (!c_done) {
		goOfThread();
		c_sink++;
	}
	return NULL;
}

static int c_start(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, c_thread, NULL);
}

static void c_stop(void)
{
	c_done = 1;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const steps = 200000

var (
	sink  uint64
	known = map[string]bool{}
	lock  sync.Mutex
)

func tell(name string, callees ...string) {
	lock.Lock()
	defer lock.Unlock()
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
func leaf(state uint64) uint64 {
	for i := 0; i < steps; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

// Grows the stack under C: it is copied to another place while C's frames and asmcgocall's stay.
//
//go:noinline
func grow(depth int) uint64 {
	var room [512]byte
	room[depth&511] = 1
	if depth == 0 {
		return uint64(room[7])
	}
	return grow(depth-1) + uint64(room[depth&255])
}

//export goCallback
func goCallback(depth C.int) {
	sink += grow(100)
	if depth > 0 {
		again(depth - 1)
		return
	}
	tell("callback", "main.leaf")
	sink += leaf(sink | 1)
	tell("c", "main._Cfunc_c_spin", "runtime.cgocall", "runtime.asmcgocall", "c_spin", "c_leaf")
	C.c_spin()
}

//go:noinline
func again(depth C.int) {
	C.c_outer(depth)
	sink++
}

//export goOfThread
func goOfThread() {
	tell("thread", "main.leaf")
	sink += leaf(sink | 1)
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	fmt.Printf("pid %d\n", os.Getpid())
	C.c_start()
	for isReady := false; time.Now().Before(end); isReady = true {
		again(2)
		if !isReady {
			time.Sleep(100 * time.Millisecond)
			fmt.Println("ready")
		}
	}
	C.c_stop()
}
