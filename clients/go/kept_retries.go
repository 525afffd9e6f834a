package sluice

import "time"

// lastGrowth is after how many pauses they grow no longer: at 2.7 s, a small part of the time for which a place is kept.
const lastGrowth = 3

// keptRetries says when a wait that keeps its place is sent again after a failure. Each address is asked before a pause.
// The wait goes on while its place may be kept, and as often as any request in any case.
type keptRetries struct {
	keep      time.Duration
	most      int
	addresses int
	// failingSince is the first failure in a row; zero if nothing fails.
	failingSince time.Time
	failures     int
	pauses       int
}

// placed notes that Sluice has answered with the place.
func (r *keptRetries) placed() {
	r.failingSince = time.Time{}
	r.failures = 0
	r.pauses = 0
}

// after returns the pause until the wait is sent again, and whether it is. The failure says in MayHaveCounted whether the
// wait may have a place.
func (r *keptRetries) after(failure *UnavailableError, now time.Time) (time.Duration, bool) {
	// A replica that stops keeps the places of its waiters. One address may lead to several replicas.
	isHandedOver := failure.Code == codeHandedOver
	addresses := r.addresses
	if isHandedOver {
		addresses = max(addresses, 2)
	}
	if isHandedOver || r.failingSince.IsZero() {
		r.failingSince = now
	}
	r.failures++
	isOfAddress := isHandedOver || failure.Status == 0 || failure.concernsAddress()
	if isOfAddress && r.failures < addresses {
		return 0, true
	}
	pause := pauseAfter(failure, min(r.pauses, lastGrowth))
	isKept := failure.MayHaveCounted && now.Add(pause).Before(r.failingSince.Add(r.keep))
	if r.pauses >= r.most && !isKept {
		return 0, false
	}
	r.failures = 0
	r.pauses++
	return pause, true
}
