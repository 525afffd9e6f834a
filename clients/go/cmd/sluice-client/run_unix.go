//go:build !windows

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

var caughtSignals = []syscall.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// keepOnBrokenPipes has a write to a pipe that nobody reads fail, instead of ending this process. CMD gets the signal as
// ever, unlike if it were ignored.
func keepOnBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// startCommand starts a program as a shell does. Descriptors that this process has inherited, such as those of <(...), stay
// open in the program: Go opens all of its own for itself only.
func startCommand(words, environment []string, hasOwnGroup bool) (*exec.Cmd, error) {
	start := func(path string, args []string) (*exec.Cmd, error) {
		command := &exec.Cmd{
			Path: path, Args: args, Env: environment, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: hasOwnGroup},
		}
		return command, command.Start()
	}
	failure := error(syscall.ENOENT)
	for _, path := range pathsOf(words[0]) {
		if _, err := os.Stat(path); errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		command, err := start(path, words)
		if errors.Is(err, syscall.ENOEXEC) {
			// A script without #!.
			command, err = start("/bin/sh", append([]string{"sh", path}, words[1:]...))
		}
		if !errors.Is(err, syscall.EACCES) {
			return command, err
		}
		failure = err
	}
	return nil, failure
}

// pathsOf returns where a program may be.
func pathsOf(name string) []string {
	if name == "" || strings.Contains(name, "/") {
		return []string{name}
	}
	path, isSet := os.LookupEnv("PATH")
	if !isSet {
		path = "/bin:/usr/bin"
	}
	var paths []string
	for _, folder := range strings.Split(path, ":") {
		if folder == "" {
			folder = "."
		}
		paths = append(paths, folder+"/"+name)
	}
	return paths
}

// isForegroundJob says whether a person at a terminal runs this: a standard stream is a terminal, or this is in the
// foreground of one, with redirected streams. CMD is in the same process group then. So the terminal lets CMD read from
// /dev/tty, and sends Ctrl-C and Ctrl-Z to both, and to a script that runs this. A group of its own would have to be made
// the terminal's foreground group, and all of that to be done again by hand.
func isForegroundJob() bool {
	if isTerminal(0) || isTerminal(1) || isTerminal(2) {
		return true
	}
	terminal, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(terminal)
	var group int32
	return control(terminal, syscall.TIOCGPGRP, unsafe.Pointer(&group)) && int(group) == syscall.Getpgrp()
}

// catchStops has what stops this process, and has it go on, come to a channel. A signal that is ignored stays so, also in CMD.
func catchStops(stops chan<- os.Signal) {
	for _, number := range []os.Signal{syscall.SIGTSTP, syscall.SIGCONT} {
		if !signal.Ignored(number) {
			signal.Notify(stops, number)
		}
	}
}

// followStops has a CMD with a group of its own stop and go on with this process, as a job of a shell.
func (c *child) followStops(stops <-chan os.Signal) {
	for number := range stops {
		c.send(number.(syscall.Signal))
		if number == syscall.SIGTSTP {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}
}

// resume lets a CMD that is stopped act on a signal.
func (c *child) resume() { c.send(syscall.SIGCONT) }

func sendSignal(process *os.Process, isToGroup bool, number syscall.Signal) error {
	if isToGroup {
		return syscall.Kill(-process.Pid, number)
	}
	return process.Signal(number)
}

func isGroupAlive(group int) bool { return syscall.Kill(-group, 0) != syscall.ESRCH }

func isTerminal(descriptor int) bool {
	_, ok := modeOf(descriptor)
	return ok
}

// terminalSize returns the columns and rows of a terminal. Some do not say theirs.
func terminalSize(descriptor int) (columns, rows int) {
	var size struct{ rows, columns, width, height uint16 }
	if !control(descriptor, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) || size.columns == 0 || size.rows == 0 {
		return 80, 24
	}
	return int(size.columns), int(size.rows)
}

// readKeys has each key be read at once and not be shown. It returns what ends that. Ctrl-C stays a signal.
func readKeys() func() {
	before, ok := modeOf(0)
	if !ok {
		return func() {}
	}
	mode := before
	mode.Lflag &^= syscall.ICANON | syscall.ECHO
	mode.Cc[syscall.VMIN], mode.Cc[syscall.VTIME] = 1, 0
	_, set := modeRequests()
	control(0, set, unsafe.Pointer(&mode))
	return func() { control(0, set, unsafe.Pointer(&before)) }
}

func modeOf(descriptor int) (syscall.Termios, bool) {
	var mode syscall.Termios
	get, _ := modeRequests()
	return mode, control(descriptor, get, unsafe.Pointer(&mode))
}

// modeRequests returns the requests that read and set the mode of a terminal, which the package syscall names differently.
func modeRequests() (get, set uintptr) {
	if runtime.GOOS == "linux" {
		return 0x5401, 0x5402 // TCGETS, TCSETS
	}
	return 0x40487413, 0x80487414 // TIOCGETA, TIOCSETA
}

func control(descriptor int, request uintptr, argument unsafe.Pointer) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(descriptor), request, uintptr(argument))
	return errno == 0
}
