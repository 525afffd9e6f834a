package sluice

import (
	"context"
	"net/http"
)

// mostInFlight is how many checks, and how many releases, of a client are in flight at a time. A replica queues 511
// connections that it has not accepted yet, so that thousands at once would fail.
const mostInFlight = 100

// lines bound how many checks and releases are in flight. Each kind has a line of its own, so that no release waits for
// checks. All other calls have no line: a wait lasts long, and a renewal must not be late.
type lines struct{ checks, releases line }

func newLines() lines {
	return lines{make(line, mostInFlight), make(line, mostInFlight)}
}

// of returns the line of a call; nil if it has none.
func (l lines) of(c call) line {
	switch {
	case c.method == http.MethodDelete:
		return l.releases
	case c.method == http.MethodPost && !c.waits():
		return l.checks
	}
	return nil
}

// line has an element for each call in flight.
type line chan struct{}

// enter waits for the turn of a call. It returns false if the context has ended before.
func (l line) enter(ctx context.Context) bool {
	if l == nil {
		return true
	}
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	// Both may have come at once.
	if ctx.Err() != nil {
		l.leave()
		return false
	}
	return true
}

// leave lets the next call in.
func (l line) leave() {
	if l != nil {
		<-l
	}
}
