package sluice

import (
	"context"
	"net/http"
	"time"
)

// lateTime is how long an answer is still read after its caller has left.
const lateTime = 5 * time.Second

// lateReads reads the answers to checks whose callers have left, since an approval in one has to be released.
type lateReads struct {
	background *background
	release    func(ctx context.Context, key, requestID string) (bool, error)
}

type outcome struct {
	answer answer
	err    error
}

// do sends a request, and returns once it is answered or its context ends.
func (l *lateReads) do(request *http.Request, key string, send func(*http.Request) (answer, error)) (answer, error) {
	ctx := request.Context()
	detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan outcome, 1)
	go func() {
		defer cancel()
		got, err := send(request.WithContext(detached))
		answered <- outcome{got, err}
	}()
	select {
	case got := <-answered:
		return got.answer, got.err
	case <-ctx.Done():
		l.background.run(func() {
			timer := time.AfterFunc(lateTime, cancel)
			defer timer.Stop()
			l.releaseApproval(context.WithoutCancel(ctx), key, <-answered)
		})
		return answer{}, ctx.Err()
	}
}

// releaseApproval releases the approval in an answer, if it is one. Nobody could be told of a failure: the approval then
// counts until its window or hold ends.
func (l *lateReads) releaseApproval(ctx context.Context, key string, got outcome) {
	if got.err != nil {
		return
	}
	if decision, err := got.answer.decision(); err == nil && decision.Approved {
		_, _ = l.release(ctx, key, decision.RequestID)
	}
}
