package main

import (
	"os"
	"os/exec"
	"syscall"
)

var caughtSignals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}

func keepOnBrokenPipes() {}

func startCommand(words, environment []string, _ bool) (*exec.Cmd, error) {
	command := exec.Command(words[0], words[1:]...)
	command.Env, command.Stdin, command.Stdout, command.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	return command, command.Start()
}

// isForegroundJob says that CMD shares the console, which sends Ctrl-C to both.
func isForegroundJob() bool { return true }

func catchStops(chan<- os.Signal) {}

func (c *child) followStops(<-chan os.Signal) {}

func (c *child) resume() {}

// sendSignal ends CMD for any signal, since Windows has no others.
func sendSignal(process *os.Process, _ bool, _ syscall.Signal) error { return process.Kill() }

func isGroupAlive(int) bool { return false }

func isTerminal(descriptor int) bool {
	var mode uint32
	handles := []syscall.Handle{syscall.Stdin, syscall.Stdout, syscall.Stderr}
	return syscall.GetConsoleMode(handles[descriptor], &mode) == nil
}

func terminalSize(int) (columns, rows int) { return 80, 24 }

// readKeys leaves the console as it is: it takes q and Return.
func readKeys() func() { return func() {} }
