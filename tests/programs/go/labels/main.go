// SPDX-License-Identifier: Apache-2.0

// labels SECONDS [PROFILE]: goroutines that work with labels of runtime/pprof, each in a function of its own. A line "labels FUNCTION KEY=VALUE,..." for each; keys are sorted,
// "-" stands for none. With PROFILE Go's own profiler runs all the while, and writes that file.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const steps = 100000

var until time.Time

//go:noinline
func leaf(state uint64) uint64 {
	for i := 0; i < steps; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

// What the goroutine has, as the context says that it has been given.
func tell(function string, ctx context.Context) {
	labels := []string{}
	pprof.ForLabels(ctx, func(key, value string) bool {
		labels = append(labels, key+"="+value)
		return true
	})
	sort.Strings(labels)
	if len(labels) == 0 {
		labels = append(labels, "-")
	}
	fmt.Printf("labels %s %s\n", function, strings.Join(labels, ","))
}

func work() {
	for state := uint64(1); time.Now().Before(until); {
		state = leaf(state)
	}
}

//go:noinline
func plain(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

//go:noinline
func nested(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

//go:noinline
func inherited(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

//go:noinline
func many(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

//go:noinline
func crowded(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

//go:noinline
func long(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

//go:noinline
func unlabelled(ctx context.Context) { work(); runtime.KeepAlive(ctx) }

// In system calls most of the time.
//
//go:noinline
func calls(ctx context.Context) {
	room := make([]byte, 65536)
	zero, _ := syscall.Open("/dev/zero", syscall.O_RDONLY, 0)
	for time.Now().Before(until) {
		for i := 0; i < 100; i++ {
			syscall.Read(zero, room)
		}
	}
	runtime.KeepAlive(ctx)
}

//go:noinline
func first() { leaf(1) }

//go:noinline
func second() { leaf(2) }

// The same goroutine with others, again and again: each time a new set, equal to the last.
//
//go:noinline
func changes(ctx context.Context) {
	for time.Now().Before(until) {
		pprof.Do(ctx, pprof.Labels("turn", "first", "common", "x"), func(context.Context) { first() })
		pprof.Do(ctx, pprof.Labels("common", "x", "turn", "second"), func(context.Context) { second() })
	}
}

func numbered(nr int) pprof.LabelSet {
	labels := []string{}
	for i := 0; i < nr; i++ {
		labels = append(labels, fmt.Sprintf("key%02d", i), fmt.Sprintf("value %d", i))
	}
	return pprof.Labels(labels...)
}

func start(function string, run func(context.Context), sets ...pprof.LabelSet) {
	ctx := context.Background()
	for _, set := range sets {
		ctx = pprof.WithLabels(ctx, set)
	}
	tell("main."+function, ctx)
	go func() {
		pprof.SetGoroutineLabels(ctx)
		run(ctx)
	}()
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	until = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	background := context.Background()
	runtime.GOMAXPROCS(4)
	if len(os.Args) > 2 {
		file, err := os.Create(os.Args[2])
		if err != nil || pprof.StartCPUProfile(file) != nil {
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	start("plain", plain, pprof.Labels("tenant", "acme", "path", "/index"))
	start("many", many, numbered(8))
	start("crowded", crowded, numbered(30))
	start("long", long, pprof.Labels("a_key_that_is_longer_than_32_bytes", "short", "long", strings.Repeat("0123456789", 10), "unicode", "\u20ac"))
	start("unlabelled", unlabelled)
	start("calls", calls, pprof.Labels("does", "system calls"))
	tell("main.first", pprof.WithLabels(background, pprof.Labels("turn", "first", "common", "x")))
	tell("main.second", pprof.WithLabels(background, pprof.Labels("turn", "second", "common", "x")))
	go changes(background)
	go pprof.Do(background, pprof.Labels("level", "outer", "kept", "yes"), func(ctx context.Context) {
		pprof.Do(ctx, pprof.Labels("level", "inner"), func(ctx context.Context) {
			tell("main.nested", ctx)
			tell("main.inherited", ctx)
			go inherited(ctx)
			nested(ctx)
		})
	})
	time.Sleep(200 * time.Millisecond)
	fmt.Printf("pid %d\nready\n", os.Getpid())
	time.Sleep(time.Until(until))
}
