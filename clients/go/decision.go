package sluice

import "time"

// Decision is the answer to a check or a wait.
type Decision struct {
	Approved bool
	// RequestID names an approval, for Release, Renew and Correct.
	RequestID string
	// Uncounted says that nothing counts the approval: a rule in shadow mode let the check pass, or the outage policy
	// "allow".
	Uncounted bool
	// RetryAfter is the time until there may be room, after a denial.
	RetryAfter time.Duration
	// Limit is the limit that has too little left, after a denial of a key with further limits.
	Limit string
	// Quota is what is left as of the decision: of the key's own limit first, and then of its further limits. It is
	// empty if Sluice does not say.
	Quota []Quota
}

// Quota is what is left of a limit.
type Quota struct {
	Name      string
	Limit     int64
	Remaining int64
	// Reset is the time until the limit resets.
	Reset time.Duration
	// Window is the length of the limit's window; 0 if that is no whole number of seconds.
	Window time.Duration
}

// Peek is what a check would get now.
type Peek struct {
	Allowed bool
	// Wait is the least time until the turn of a check that joined the queue now; 0 if it would be approved.
	Wait time.Duration
	// Limit is the limit that has too little left, if the key has further limits.
	Limit string
	Quota []Quota
}
