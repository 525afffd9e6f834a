package sluice

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// believedTime is how long the client believes what Sluice has said about the longest time of a place: meanwhile its
// replicas may be updated.
const believedTime = 10 * time.Minute

// overtakenTime is how much later a request may arrive than the DELETE that was sent after it.
const overtakenTime = time.Second

// longestKept finds for how many milliseconds Sluice keeps places at most, in the message of a RejectedError.
var longestKept = regexp.MustCompile(`^keepMillis must be at most (\d+)`)

// waiting is what all waits of a client have in common.
type waiting struct {
	keep     time.Duration
	longPoll time.Duration
	mu       sync.Mutex
	// longest is for how long Sluice keeps places at most, as it has said.
	longest       time.Duration
	believedUntil time.Time
}

// kept returns for how long a wait keeps its place.
func (w *waiting) kept() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.believedUntil) {
		return min(w.keep, w.longest)
	}
	return w.keep
}

// learn reads from an error that Sluice keeps places for less than `keep`.
func (w *waiting) learn(err error, keep time.Duration) bool {
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.Code != codeOverrideTooLarge {
		return false
	}
	found := longestKept.FindStringSubmatch(rejected.Message)
	if found == nil {
		return false
	}
	millis, _ := wholeNumber(found[1])
	longest := durationOf(millis)
	if longest >= keep {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest, w.believedUntil = longest, time.Now().Add(believedTime)
	return true
}

// Wait asks for permission, and waits for it in the queue of the key. It is denied if the queue is full, or if its turn
// can't come within MaxWait.
//
// The place in the queue outlives its connection: the wait goes on if the connection or the replica is lost. If the
// context ends, the place is given up.
func (c *Client) Wait(ctx context.Context, key string, options WaitOptions) (Decision, error) {
	if options.MaxWait < 0 {
		return c.Check(ctx, key, options.CheckOptions)
	}
	for {
		keep := c.waiting.kept()
		if keep == 0 {
			return c.waitInOneRequest(ctx, key, options)
		}
		wait, err := c.newKeptWait(key, options, keep)
		if err != nil {
			return Decision{}, err
		}
		decision, err := wait.decide(ctx)
		if !c.waiting.learn(err, keep) {
			return decision, err
		}
		options.MaxWait = wait.timeLeft()
	}
}

// waitInOneRequest waits in a place that ends with its connection.
func (c *Client) waitInOneRequest(ctx context.Context, key string, options WaitOptions) (Decision, error) {
	id, err := newID()
	if err != nil {
		return Decision{}, err
	}
	query := c.checkQuery(options.CheckOptions)
	query.Set("canWait", "true")
	query.Set("requestId", id)
	setDuration(query, "maxWaitMillis", options.MaxWait)
	got, err := c.sendRepeatedly(ctx, call{method: http.MethodPost, names: []string{key}, query: query}, c.retries)
	if err != nil {
		if mayHavePlace(err) {
			c.withdraw(ctx, key, id)
		}
		return Decision{}, err
	}
	return got.decision()
}

// withdraw gives up the place of a wait that has ended, or its approval. Nobody could be told of a failure: the place then
// lapses.
func (c *Client) withdraw(ctx context.Context, key, requestID string) {
	ctx = context.WithoutCancel(ctx)
	c.background.run(func() {
		if found, _ := c.Release(ctx, key, requestID); found {
			return
		}
		sleep(ctx, overtakenTime)
		_, _ = c.Release(ctx, key, requestID)
	})
}

// mayHavePlace says whether Sluice may know the id of a wait that has failed.
func mayHavePlace(err error) bool {
	var failure *UnavailableError
	return errors.As(err, &failure) && failure.MayHaveCounted
}

// newID makes a UUID of version 4.
func newID() (string, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", fmt.Errorf("sluice: no random number for a request id: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
}
