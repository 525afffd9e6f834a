package sluice

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Values that turn an option off.
const (
	// NoRetries sends each request once to each address. For Options.Retries.
	NoRetries = -1
	// NoKeep has the place of a wait end with its connection. For Options.KeepPlace.
	NoKeep = -1
	// NoWait asks once. For WaitOptions.MaxWait.
	NoWait = -1
	// NoHold lets a permit end with its window. For CheckOptions.Hold of a permit.
	NoHold = -1
	// NoQueue turns the queue of a key off. For CheckOptions.MaxRequestsInQueue.
	NoQueue = -1
)

// Options says where Sluice is, and how to ask it.
type Options struct {
	// URLs are the addresses of Sluice, such as http://localhost:8080. The first is asked until it can't be reached,
	// loses an answer or stops; then the next one. At least one is required.
	URLs []string
	// Token is the bearer token.
	Token string
	// TokenSource is called for the bearer token of each request instead, so that it can change.
	TokenSource func(context.Context) (string, error)
	// Timeout is the longest time of a call that does not wait, with its retries, and with its time in line while 100
	// checks or 100 releases of the client are in flight. By default it is 5 s. It is also how much later than due the
	// answer to a request of a wait may come.
	Timeout time.Duration
	// Retries is how often a request is sent again after a pause, if that can't count twice. By default it is 3.
	Retries int
	// KeepPlace is for how long the place of a wait stays after its connection has ended. By default it is 30 s.
	KeepPlace time.Duration
	// LongPoll is the longest request of a wait, rounded up to seconds. By default it is 25 s.
	LongPoll time.Duration
	// Holder says who holds approvals that are held, for people who look at a key: 1 to 64 bytes. By default it is the
	// name of the host and the id of the process.
	Holder string
	// Anonymous holds approvals without a holder.
	Anonymous bool
	// Transport sends the requests, for example with a certificate authority of your own. By default it is an
	// http.Transport of the client's own, which uses no proxy of the environment. Each wait takes a connection, so it must not bound these.
	Transport http.RoundTripper
}

// CheckOptions says what to ask for, as the parameters of the HTTP API do.
type CheckOptions struct {
	// Hits is how much of the maximum the check takes, all or nothing. By default it is 1.
	Hits int
	// Hold is how long the approval counts after it was given or renewed last. By default it counts until its window
	// ends, and a permit is held for 30 s.
	Hold time.Duration
	// MaxRequests is the maximum of the key from now on. By default it stays.
	MaxRequests int
	// DefaultMaxRequests is the maximum of the key from now on, unless a rule sets one or MaxRequests is given. By default
	// the maximum stays.
	DefaultMaxRequests int
	// MaxRequestsInQueue is the size of the key's queue from now on. By default it stays.
	MaxRequestsInQueue int
	// Window is the length of the key's windows from the next one on. By default it stays.
	Window time.Duration
	// Lane is the lane of the check, if its key has lanes. By default it is the last one.
	Lane string
	// Group is the group of the check, such as its tenant, if its key has fair groups. By default it is the group of
	// all checks that name none.
	Group string
}

// WaitOptions says what to ask for, and how to wait for it.
type WaitOptions struct {
	CheckOptions
	// MaxWait is the longest time in the queue: a wait whose turn can't come in time is denied. By default there is no
	// limit.
	MaxWait time.Duration
	// OnProgress is called with the place of the wait once it is in the queue, and then after each LongPoll. The wait
	// goes on once it returns.
	OnProgress func(Progress)
}

// Progress is the place of a wait in the queue of its key.
type Progress struct {
	// Position is 1 at the head of the queue. It is exact while at most 1,000 waiters are before it.
	Position int
	// Wait is the least time until the turn, if nothing is released before.
	Wait time.Duration
}

// PauseOptions says what is paused, and how.
type PauseOptions struct {
	// Group is the group that is paused, if the key has fair groups. By default it is the whole key.
	Group string
	// AtLeast does not shorten a pause that is on: for a program that pauses by itself.
	AtLeast bool
}

// ReportOptions says which limit a report is about.
type ReportOptions struct {
	// Reset is the time until the quota resets. By default that is at the end of the limit's window.
	Reset time.Duration
	// Limit is a further limit of the key. By default it is the key's own limit.
	Limit string
	// Group is the group that the report is about, if each group has the limit to itself. By default it is the group of
	// all checks that name none.
	Group string
}

// query returns the parameters of a check.
func (o CheckOptions) query() url.Values {
	query := url.Values{}
	setInt(query, "hits", o.Hits)
	setDuration(query, "holdMillis", o.Hold)
	setInt(query, "maxRequests", o.MaxRequests)
	setInt(query, "defaultMaxRequests", o.DefaultMaxRequests)
	setDuration(query, "windowMillis", o.Window)
	setText(query, "lane", o.Lane)
	setText(query, "group", o.Group)
	if o.MaxRequestsInQueue < 0 {
		query.Set("maxRequestsInQueue", "0")
	} else {
		setInt(query, "maxRequestsInQueue", o.MaxRequestsInQueue)
	}
	return query
}

// Each of these sets a parameter, unless its value is zero.

func setInt(query url.Values, name string, value int) {
	if value != 0 {
		query.Set(name, strconv.Itoa(value))
	}
}

func setDuration(query url.Values, name string, value time.Duration) {
	if value != 0 {
		query.Set(name, millis(value))
	}
}

func setText(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// millis is a duration in milliseconds. Parts of one are rounded up, so that a short time is not none.
func millis(d time.Duration) string {
	whole := d.Milliseconds()
	if d > time.Duration(whole)*time.Millisecond {
		whole++
	}
	return strconv.FormatInt(whole, 10)
}
