package sluice

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	// Each pause is so much longer than the last: the default number of retries bridges a restart of a second.
	pauseGrowth = 3
	// A pause is up to so much longer, so that many clients do not retry at once.
	jitter = 0.2
)

// retries says when one request is sent again: at once while another address may answer, else after a pause. It is sent
// again only if that can't take two approvals, of which one is never given back.
type retries struct {
	call      call
	most      int
	addresses int
	failures  int
	pauses    int
	wasLost   bool
}

// after returns the pause until the request is sent again, and whether it is.
func (r *retries) after(failure *UnavailableError) (time.Duration, bool) {
	r.wasLost = r.wasLost || failure.MayHaveCounted
	if failure.MayHaveCounted && !(failure.isLost && r.call.isRepeatable()) {
		return 0, false
	}
	failure.MayHaveCounted = r.wasLost
	r.failures++
	if failure.concernsAddress() && r.failures < r.addresses {
		return 0, true
	}
	if r.pauses >= r.most {
		return 0, false
	}
	pause := pauseAfter(failure, r.pauses)
	r.failures = 0
	r.pauses++
	return pause, true
}

// pauseAfter returns the pause before a request is sent again, which is longer after more pauses, and
// never shorter than RetryAfter.
func pauseAfter(failure *UnavailableError, pauses int) time.Duration {
	least := failure.RetryAfter
	if least == 0 {
		least = firstPause
		for range pauses {
			least *= pauseGrowth
		}
	}
	return least + time.Duration(rand.Float64()*jitter*float64(least))
}

// sleep waits for a pause, or until the context ends.
func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// endsWithin says whether a context ends before a pause does.
func endsWithin(ctx context.Context, pause time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < pause
}
