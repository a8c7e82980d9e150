// SPDX-License-Identifier: Apache-2.0
// parks SECONDS: what a Go program waits for: a system call of a goroutine's own, a channel of one that has a thread to itself, and a connection whose reader leaves the
// waiting to the netpoller. At the end: NAME TID ASKED TOOK, in seconds.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const nap = 20 * time.Millisecond

var end time.Time

type told struct {
	name        string
	tid         int
	asked, took time.Duration
}

//go:noinline
func sleepsItself() {
	left := syscall.NsecToTimespec(int64(nap))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

//go:noinline
func inSyscall(done chan told) {
	runtime.LockOSThread()
	t := told{name: "syscall", tid: syscall.Gettid()}
	for time.Now().Before(end) {
		began := time.Now()
		sleepsItself()
		t.took += time.Since(began)
		t.asked += nap
	}
	done <- t
}

//go:noinline
func onChannel(ticks chan int, done chan told) {
	runtime.LockOSThread()
	t := told{name: "channel", tid: syscall.Gettid()}
	for {
		began := time.Now()
		if <-ticks == 0 {
			break
		}
		t.took += time.Since(began)
		t.asked += nap
	}
	done <- t
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

//go:noinline
func onConnection(conn net.Conn, done chan told) {
	t := told{name: "connection"}
	for {
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			break
		}
		t.took += time.Since(began)
		t.asked += nap
	}
	done <- t
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	check(err)
	end = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done, ticks := make(chan told), make(chan int)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ours, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	theirs, err := listener.Accept()
	check(err)
	go inSyscall(done)
	go onChannel(ticks, done)
	go onConnection(theirs, done)
	for time.Now().Before(end) {
		time.Sleep(nap)
		ticks <- 1
		_, err = ours.Write([]byte{1})
		check(err)
	}
	close(ticks)
	check(ours.Close())
	for i := 0; i < 3; i++ {
		t := <-done
		fmt.Println(t.name, t.tid, t.asked.Seconds(), t.took.Seconds())
	}
}
