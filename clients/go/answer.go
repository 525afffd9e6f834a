package sluice

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"
)

// answer is an answer of Sluice.
type answer struct {
	status int
	header http.Header
	// isLast says whether the connection ends with it. A replica that stops says so.
	isLast bool
	body   body
}

// body has the fields of all bodies, as they are there.
type body struct {
	RequestID  string `json:"request_id"`
	Position   *int   `json:"position"`
	WaitMillis *int64 `json:"waitMillis"`
	Error      string `json:"error"`
	Code       string `json:"code"`
	Limit      string `json:"limit"`
	// problem says what is wrong with a body that can't be read.
	problem string
}

// bodyIn reads the body of an answer. Something other than Sluice may answer with a body that can't be read.
func bodyIn(text []byte) body {
	var read *body
	err := json.Unmarshal(text, &read)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		kind := "a number"
		if wrong.Type.Kind() == reflect.String {
			kind = "a text"
		}
		return body{problem: fmt.Sprintf("%s must be %s", wrong.Field, kind)}
	case err != nil || read == nil:
		return body{problem: "the body must be an object"}
	}
	return *read
}

// decision reads the answer to a check.
func (a answer) decision() (Decision, error) {
	switch {
	case a.status == http.StatusOK && a.body.RequestID != "":
		_, isShadow := a.header["X-Sluice-Shadow"]
		return Decision{
			Approved:  true,
			RequestID: a.body.RequestID,
			Uncounted: isShadow || a.header.Get("X-Sluice-Outage-Policy") == "allow",
			Quota:     quotaIn(a.header),
		}, nil
	case a.status == http.StatusTooManyRequests:
		return Decision{
			RetryAfter: max(a.retryAfter(), time.Second),
			Limit:      a.body.Limit,
			Quota:      quotaIn(a.header),
		}, nil
	}
	return Decision{}, a.failure()
}

// progress reads the place of a wait in a 202.
func (a answer) progress() (Progress, error) {
	if a.body.Position == nil || a.body.WaitMillis == nil {
		return Progress{}, a.failure()
	}
	return Progress{Position: *a.body.Position, Wait: durationOf(*a.body.WaitMillis)}, nil
}

// peek reads the answer to a peek.
func (a answer) peek() (Peek, error) {
	isAllowed := a.status == http.StatusOK
	if (!isAllowed && a.status != http.StatusTooManyRequests) || a.body.WaitMillis == nil {
		return Peek{}, a.failure()
	}
	wait := durationOf(*a.body.WaitMillis)
	return Peek{Allowed: isAllowed, Wait: wait, Limit: a.body.Limit, Quota: quotaIn(a.header)}, nil
}

// isFound says whether there was the approval that a call is about.
func (a answer) isFound() (bool, error) {
	switch {
	case a.status == http.StatusOK:
		return true, nil
	case a.body.Code == codeRequestNotFound:
		return false, nil
	}
	return false, a.failure()
}

// failure returns the error in an answer.
func (a answer) failure() error {
	message := a.body.Error
	if message == "" {
		message = http.StatusText(a.status)
	}
	if a.status >= 400 && a.status < 500 {
		return &RejectedError{Status: a.status, Code: a.body.Code, Message: message}
	}
	if a.status < 400 {
		message = "not an answer from Sluice"
		if a.body.problem != "" {
			message += ": " + a.body.problem
		}
	}
	return &UnavailableError{
		Status:         a.status,
		Code:           a.body.Code,
		Message:        message,
		MayHaveCounted: !hasCountedNothing(a.body.Code),
		RetryAfter:     a.retryAfter(),
	}
}

// retryAfter returns the time that the answer asks to wait; 0 if it asks for none.
func (a answer) retryAfter() time.Duration {
	seconds, _ := wholeNumber(a.header.Get("Retry-After"))
	return secondsOf(seconds)
}

// hasCountedNothing says whether a 503 with this code is certain to have counted nothing.
func hasCountedNothing(code string) bool {
	switch code {
	case codeKeyFull, codeShuttingDown, codeStoreFull, codeTooManyWaiters, codeTooManyWaitersOfCaller:
		return true
	}
	return false
}

// longestSeconds is the longest window of Sluice, 366 days: no time in an answer is longer.
const longestSeconds = 366 * 86_400

func secondsOf(seconds int64) time.Duration {
	return time.Duration(min(seconds, longestSeconds)) * time.Second
}

func durationOf(millis int64) time.Duration { return time.Duration(millis) * time.Millisecond }
