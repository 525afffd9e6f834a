package sluice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// leastInterval is the time between the beginnings of two requests at least, if the first has ended before it was due.
const leastInterval = time.Second

// keptWait is a wait whose place outlives its connections: a chain of requests with one id, each of which goes on where
// the one before has ended, whichever replica gets it.
type keptWait struct {
	client    *Client
	key       string
	options   WaitOptions
	keep      time.Duration
	begunAt   time.Time
	requestID string
	// mayHavePlace says whether Sluice may know the id.
	mayHavePlace bool
	// asksForPlace says whether the next request is answered at once: somebody wants to know the place.
	asksForPlace bool
	longPoll     time.Duration
	wasCut       bool
	retries      keptRetries
}

func (c *Client) newKeptWait(key string, options WaitOptions, keep time.Duration) (*keptWait, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	return &keptWait{
		client:       c,
		key:          key,
		options:      options,
		keep:         keep,
		begunAt:      time.Now(),
		requestID:    id,
		asksForPlace: options.OnProgress != nil,
		longPoll:     c.waiting.longPoll,
		retries:      keptRetries{keep: keep, most: c.retries, addresses: c.exchange.addresses.count()},
	}, nil
}

// decide asks until Sluice decides. After an error, neither a place nor an approval is left behind.
func (w *keptWait) decide(ctx context.Context) (Decision, error) {
	for ctx.Err() == nil {
		askedAt := time.Now()
		decision, pause, err := w.ask(ctx, askedAt)
		if err != nil {
			w.leave(ctx)
			return Decision{}, err
		}
		if decision != nil {
			return *decision, nil
		}
		sleep(ctx, pause)
	}
	w.leave(ctx)
	return Decision{}, ended(ctx, w.mayHavePlace)
}

// timeLeft returns what is left of MaxWait, at least a moment; 0 if there is no limit.
func (w *keptWait) timeLeft() time.Duration {
	if w.options.MaxWait == 0 {
		return 0
	}
	return max(w.options.MaxWait-time.Since(w.begunAt), time.Millisecond)
}

func (w *keptWait) leave(ctx context.Context) {
	if w.mayHavePlace {
		w.client.withdraw(ctx, w.key, w.requestID)
	}
}

// ask sends a request. Without a decision and an error, the wait goes on after the pause.
func (w *keptWait) ask(ctx context.Context, askedAt time.Time) (*Decision, time.Duration, error) {
	wait := w.nextWait()
	bounded, cancel := context.WithTimeoutCause(ctx, wait+w.client.timeout, errOutOfTime)
	defer cancel()
	hadPlace := w.mayHavePlace
	w.mayHavePlace = true
	got, err := w.client.exchange.send(bounded, call{
		method: http.MethodPost,
		names:  []string{w.key},
		query:  w.query(),
		prefer: fmt.Sprintf("wait=%d", wait/time.Second),
	})
	if err != nil {
		w.mayHavePlace = hadPlace || mayHavePlace(err)
		pause, err := w.failed(ctx, err, askedAt)
		return nil, pause, err
	}
	return w.read(got, hadPlace, askedAt)
}

// read reads an answer. Without a decision and an error, the wait goes on after the pause.
func (w *keptWait) read(got answer, hadPlace bool, askedAt time.Time) (*Decision, time.Duration, error) {
	next := askedAt.Add(leastInterval)
	switch {
	case got.status == http.StatusAccepted:
		progress, err := got.progress()
		if err != nil {
			return nil, 0, err
		}
		w.goesOn()
		if w.asksForPlace {
			w.asksForPlace, next = false, askedAt
		}
		if w.options.OnProgress != nil {
			w.options.OnProgress(progress)
		}
	case got.body.Code == codePlaceTakenOver:
		// By an earlier request of this wait, which has arrived late.
		w.goesOn()
	case got.body.Code == codeRequestIDUsed && hadPlace:
		// Its turn has come, and its hold has lapsed before an answer got through. It begins again.
		id, err := newID()
		if err != nil {
			return nil, 0, err
		}
		w.requestID, w.mayHavePlace = id, false
	default:
		decision, err := got.decision()
		if err != nil {
			w.mayHavePlace = hadPlace
			return nil, 0, err
		}
		return &decision, 0, nil
	}
	return nil, time.Until(next), nil
}

// query returns the parameters of the next request.
func (w *keptWait) query() url.Values {
	query := w.client.checkQuery(w.options.CheckOptions)
	query.Set("canWait", "true")
	query.Set("requestId", w.requestID)
	query.Set("keepMillis", millis(w.keep))
	if w.options.MaxWait > 0 {
		query.Set("maxWaitMillis", millis(w.options.MaxWait))
		// Sluice measures the wait by the place, which began later if the first one was lost.
		if time.Since(w.begunAt) >= w.options.MaxWait {
			query.Set("maxWaitMillis", "0")
		}
	}
	return query
}

// nextWait returns after how many whole seconds the next request is answered if it is not decided.
func (w *keptWait) nextWait() time.Duration {
	if w.asksForPlace {
		return 0
	}
	wait := w.longPoll
	if w.options.MaxWait > 0 {
		wait = min(wait, w.timeLeft())
	}
	return (wait + time.Second - 1).Truncate(time.Second)
}

// goesOn notes that Sluice has answered with the place.
func (w *keptWait) goesOn() {
	w.retries.placed()
	w.wasCut = false
}

// failed returns the pause after which the wait asks again, or the error if it must not.
func (w *keptWait) failed(ctx context.Context, err error, askedAt time.Time) (time.Duration, error) {
	var failure *UnavailableError
	if !errors.As(err, &failure) {
		return 0, err
	}
	failure.MayHaveCounted = w.mayHavePlace
	if ctx.Err() != nil {
		return 0, failure
	}
	now := time.Now()
	w.shorten(failure, now.Sub(askedAt))
	pause, again := w.retries.after(failure, now)
	if !again || endsWithin(ctx, pause) {
		return 0, failure
	}
	return pause, nil
}

// shorten asks for shorter requests if something on the way, such as a proxy, has ended two in a row.
func (w *keptWait) shorten(failure *UnavailableError, lasted time.Duration) {
	wasCut := failure.Status != http.StatusServiceUnavailable && lasted > leastInterval
	if wasCut && w.wasCut {
		w.longPoll = max(min(w.longPoll, lasted)/2, leastInterval)
	}
	w.wasCut = wasCut
}
