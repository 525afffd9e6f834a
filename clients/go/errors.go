package sluice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The codes of errors that the client reads. docs/errors-and-headers.md lists all codes.
const (
	codeDenied                 = "RATE_LIMIT_EXCEEDED"
	codeHandedOver             = "HANDED_OVER"
	codeKeyFull                = "KEY_FULL"
	codeOverrideTooLarge       = "OVERRIDE_TOO_LARGE"
	codePlaceTakenOver         = "PLACE_TAKEN_OVER"
	codeRequestIDUsed          = "REQUEST_ID_USED"
	codeRequestNotFound        = "REQUEST_NOT_FOUND"
	codeShuttingDown           = "SHUTTING_DOWN"
	codeStoreFull              = "STORE_FULL"
	codeTooManyWaiters         = "TOO_MANY_WAITERS"
	codeTooManyWaitersOfCaller = "TOO_MANY_WAITERS_OF_CALLER"
)

var (
	// ErrDenied is what a [DeniedError] is, for errors.Is.
	ErrDenied = errors.New("sluice: rate limit exceeded")
	// ErrPermitLost is what a [PermitLostError] is, for errors.Is.
	ErrPermitLost = errors.New("sluice: the permit no longer counts")
)

// RejectedError says that Sluice rejects a request with a 4xx, for example for its key or its token. The same request
// fails again.
type RejectedError struct {
	Status int
	// Code names the error, such as KEY_NOT_ALLOWED. It is empty if something other than Sluice has answered.
	Code    string
	Message string
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("sluice: %s (status %d)", e.Message, e.Status)
}

// DeniedError says that Sluice denies a permit, or a request of a [Transport].
type DeniedError struct {
	Key string
	// RetryAfter is the time until there may be room.
	RetryAfter time.Duration
	// Limit is the limit that has too little left, if the key has further limits.
	Limit string
	// Status is 429, and Code RATE_LIMIT_EXCEEDED.
	Status int
	Code   string
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("sluice: rate limit of %q exceeded; retry after %v", e.Key, e.RetryAfter)
}

// Is makes errors.Is(err, ErrDenied) true.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// PermitLostError says that a permit no longer counts, so that another caller may begin.
type PermitLostError struct {
	Key       string
	RequestID string
	cause     error
}

func (e *PermitLostError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("sluice: the permit of %q no longer counts", e.Key)
	}
	return fmt.Sprintf("sluice: the permit of %q no longer counts: %v", e.Key, e.cause)
}

// Is makes errors.Is(err, ErrPermitLost) true.
func (e *PermitLostError) Is(target error) bool { return target == ErrPermitLost }

// Unwrap returns why the last renewal failed, if it failed.
func (e *PermitLostError) Unwrap() error { return e.cause }

// UnavailableError says that there is no decision: Sluice is unreachable, its answer was lost or late, it fails with a
// 5xx, or the context has ended.
//
// errors.Is finds context.Canceled, and context.DeadlineExceeded also after the client's own Timeout.
type UnavailableError struct {
	// Status is 0 if Sluice has not answered.
	Status int
	// Code names the error, such as STORE_UNAVAILABLE, if Sluice has answered.
	Code    string
	Message string
	// MayHaveCounted says whether the request may still have taken effect.
	MayHaveCounted bool
	// RetryAfter is when Sluice asks to try again; 0 if it does not.
	RetryAfter time.Duration
	// isLost says whether there was no connection, or it broke before the answer: another address may answer.
	isLost bool
	cause  error
}

func (e *UnavailableError) Error() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("sluice: %s (status %d)", e.Message, e.Status)
	case e.cause != nil:
		return fmt.Sprintf("sluice: %s: %v", e.Message, e.cause)
	}
	return "sluice: " + e.Message
}

// Unwrap returns why there is no answer, if there is none.
func (e *UnavailableError) Unwrap() error { return e.cause }

// concernsAddress says whether another address may answer.
func (e *UnavailableError) concernsAddress() bool { return e.isLost || e.Code == codeShuttingDown }

func deniedError(key string, decision Decision) *DeniedError {
	return &DeniedError{
		Key:        key,
		RetryAfter: decision.RetryAfter,
		Limit:      decision.Limit,
		Status:     http.StatusTooManyRequests,
		Code:       codeDenied,
	}
}

// endOf returns why a context has ended: as ctx.Err says, and the cause if it has another one.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
