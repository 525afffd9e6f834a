package sluice

import (
	"context"
	"errors"
	"time"
)

const (
	// So that a hold outlasts the failure of one renewal.
	renewalsPerHold = 3
	// After a failure, the next renewal comes sooner, since an outage may end at any time.
	retriesPerHold = 15
)

// errSuspended is why a hold has lapsed of which no renewal has failed.
var errSuspended = errors.New("the process was suspended or busy")

// hold is the hold of an approval. Its times are those of this process.
type hold struct {
	client    *Client
	key       string
	requestID string
	length    time.Duration
	// heldSince is when the hold began at the earliest.
	heldSince time.Time
}

// begin renews the hold if its approval is old: it has waited, and nothing says how long ago its turn came. The process may
// have been suspended since.
func (h *hold) begin(ctx context.Context) error {
	if time.Now().Before(h.nextRenewal()) {
		return nil
	}
	return h.renewBefore(ctx, time.Now().Add(h.length))
}

// keepRenewed renews the hold until it is lost, or the context ends. It returns why.
func (h *hold) keepRenewed(ctx context.Context) error {
	for ctx.Err() == nil {
		sleep(ctx, time.Until(h.nextRenewal()))
		if err := h.renewBefore(ctx, h.heldSince.Add(h.length)); err != nil {
			return err
		}
	}
	return ended(ctx, false)
}

func (h *hold) nextRenewal() time.Time { return h.heldSince.Add(h.length / renewalsPerHold) }

// renewBefore renews the hold once. A renewal that fails is sent again until the hold has lapsed. The error is a
// PermitLostError, or says that the context has ended.
func (h *hold) renewBefore(ctx context.Context, lapsesAt time.Time) error {
	cause := errSuspended
	for ctx.Err() == nil {
		sentAt := time.Now()
		left := lapsesAt.Sub(sentAt)
		if left <= 0 {
			return &PermitLostError{Key: h.key, RequestID: h.requestID, cause: cause}
		}
		// A renewal ends before the next one is due, so that no two are under way at a time.
		isHeld, err := h.renew(ctx, min(h.length/renewalsPerHold, left))
		switch {
		case isHeld:
			// Sluice counts the hold from a later moment.
			h.heldSince = sentAt
			return nil
		case err == nil:
			return &PermitLostError{Key: h.key, RequestID: h.requestID}
		}
		cause = err
		sleep(ctx, min(h.length/retriesPerHold, time.Until(lapsesAt)))
	}
	return ended(ctx, false)
}

func (h *hold) renew(ctx context.Context, timeout time.Duration) (bool, error) {
	got, err := h.client.sendWithin(ctx, amendment(h.key, h.requestID, nil), timeout, 0)
	if err != nil {
		return false, err
	}
	return got.isFound()
}

func isLoss(err error) bool { return errors.Is(err, ErrPermitLost) }
