package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	sluice "sluice-client"
)

const (
	defaultGrace = 10 * time.Second
	// lookEvery is how often it looks whether CMD has ended: nothing tells when the last process of a group has.
	lookEvery = 50 * time.Millisecond
)

// run runs CMD while it holds an approval. It returns the exit code.
func run(a asked) (code int, err error) {
	options := a.waitOptions()
	if !a.values.has("max") {
		options.DefaultMaxRequests = 1
	}
	if a.values.has("no-wait") {
		options.MaxWait = sluice.NoWait
	}
	permit, err := a.client.Permit(a.signals.ctx, a.key, options)
	if err != nil {
		return 0, err
	}
	defer func() {
		if failure := permit.Release(); failure != nil {
			a.messages.unreleased(failure)
		}
	}()
	a.messages.approved(permit.RequestID, atATime(permit.Quota, a.values.text("hits")))
	child, err := a.start(permit)
	if err != nil {
		return 0, err
	}
	return a.await(child, permit)
}

// start starts CMD, which gets the signals from then on.
func (a asked) start(permit *sluice.Permit) (child *child, err error) {
	err = a.signals.handOver(func() (func(syscall.Signal), error) {
		added := map[string]string{"SLUICE_KEY": a.key, "SLUICE_REQUEST_ID": permit.RequestID}
		child, err = startChild(a.commandLine, added, a.messages.unsignalled)
		if err != nil {
			return nil, startError{a.commandLine[0], err}
		}
		return child.pass, nil
	})
	return child, err
}

// await waits for the end of CMD, and ends it if the hold is lost or its time is over. It returns the exit code of run.
func (a asked) await(child *child, permit *sluice.Permit) (int, error) {
	var timeout <-chan time.Time
	if a.values.has("timeout") {
		timeout = time.After(a.values.millisOr("timeout", 0))
	}
	code := 0
	select {
	case <-child.ended:
		return child.code(), nil
	case <-permit.Context().Done():
		a.messages.lost(context.Cause(permit.Context()))
		code = exitLost
	case <-timeout:
		a.messages.timedOut(a.values.text("timeout"))
		code = exitTimedOut
	}
	child.stop(a.values.millisOr("grace", defaultGrace))
	<-child.ended
	return code, nil
}

// child is CMD, which has the standard streams of this process.
type child struct {
	command *exec.Cmd
	// hasOwnGroup says whether CMD and its children are a process group, to which signals go.
	hasOwnGroup   bool
	onSignalError func(error)
	ended         chan struct{}
}

// startChild starts CMD. `added` is added to its environment. `onSignalError` gets the error of each signal that can't be
// sent, as to a process of another user.
func startChild(words []string, added map[string]string, onSignalError func(error)) (*child, error) {
	var environment []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if _, isReplaced := added[name]; !isReplaced {
			environment = append(environment, variable)
		}
	}
	for name, value := range added {
		environment = append(environment, name+"="+value)
	}
	c := &child{hasOwnGroup: !isForegroundJob(), onSignalError: onSignalError, ended: make(chan struct{})}
	stops := make(chan os.Signal, 4)
	if c.hasOwnGroup {
		// Before CMD goes on: a stop that came in between would stop only this process.
		catchStops(stops)
	}
	var err error
	if c.command, err = startCommand(words, environment, c.hasOwnGroup); err != nil {
		signal.Stop(stops)
		return nil, err
	}
	go c.followStops(stops)
	go func() {
		// The state has its exit code.
		_ = c.command.Wait()
		close(c.ended)
	}()
	return c, nil
}

// code returns the exit code of CMD, or 128 and the number of the signal that has ended it.
func (c *child) code() int {
	if status := c.command.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return c.command.ProcessState.ExitCode()
}

// pass passes on a signal that this process got. A terminal sends its signals to CMD as well.
func (c *child) pass(number syscall.Signal) {
	if c.hasOwnGroup || (number != syscall.SIGINT && number != syscall.SIGQUIT) {
		c.send(number)
	}
}

// stop ends it by SIGTERM. Whatever of it still goes on after the grace is ended by SIGKILL.
func (c *child) stop(grace time.Duration) {
	killsAt := time.Now().Add(grace)
	c.send(syscall.SIGTERM)
	c.resume()
	for c.isAlive() {
		if !time.Now().Before(killsAt) {
			c.send(syscall.SIGKILL)
			return
		}
		time.Sleep(min(lookEvery, time.Until(killsAt)))
	}
}

func (c *child) isAlive() bool {
	if c.hasOwnGroup {
		return isGroupAlive(c.command.Process.Pid)
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func (c *child) send(number syscall.Signal) {
	err := sendSignal(c.command.Process, c.hasOwnGroup, number)
	if err != nil && !isGone(err) {
		c.onSignalError(err)
	}
}

func isGone(err error) bool {
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.Errno(3))
}

// signals are the signals that this process gets. They go to the receiver if there is one. Without one, the first
// interrupts, and the next ends the process. A signal that is ignored stays ignored, as nohup asks for.
type signals struct {
	// ctx ends by the first signal that nobody received, with an interruptedError.
	ctx       context.Context
	interrupt context.CancelCauseFunc
	came      chan os.Signal
	mu        sync.Mutex
	receiver  func(syscall.Signal)
}

func catchSignals() *signals {
	s := &signals{came: make(chan os.Signal, 16)}
	s.ctx, s.interrupt = context.WithCancelCause(context.Background())
	for _, one := range caughtSignals {
		if !signal.Ignored(one) {
			signal.Notify(s.came, one)
		}
	}
	go func() {
		for one := range s.came {
			s.receive(one.(syscall.Signal))
		}
	}()
	return s
}

func (s *signals) receive(number syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receiver != nil {
		s.receiver(number)
		return
	}
	s.release()
	s.interrupt(interruptedError{number})
}

// handOver starts a receiver of the signals. Those that come meanwhile go to it. The error says that a signal came before.
func (s *signals) handOver(start func() (func(syscall.Signal), error)) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.receiver, err = start()
	return err
}

// release gives each signal its default effect.
func (s *signals) release() { signal.Stop(s.came) }
