package sluice

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// OwnLimit names the key's own limit in [ReportedLimits]. No further limit has this name.
const OwnLimit = "default"

const (
	// How often what remains of a limit is reported at most. The reports of an answer also take no longer.
	reportInterval = time.Second
	// How long a limit is not asked again that has rejected a report. Its rule may change.
	rejectedTime = time.Minute
)

// ReportedLimits names the limit of the key for each number that a vendor says, such as [OwnLimit]. Numbers without a
// limit are not reported.
//
// A report is sent if less remains than Sluice believes, at most once a second for each key and limit, and takes one
// second at most. If Sluice rejects it, for example since the limit is not a fixed window, the limit gets no report for a
// minute, and the key is paused until the vendor's reset if nothing remains. A report that fails is ignored.
type ReportedLimits struct {
	Requests     string
	Tokens       string
	InputTokens  string
	OutputTokens string
}

// leastIn returns the least that an answer says remains of each limit. Of two, it takes the one that resets later.
func (l ReportedLimits) leastIn(header http.Header, now time.Time) map[string]vendorRemaining {
	if l == (ReportedLimits{}) {
		return nil
	}
	limits := map[unit]string{
		unitRequests: l.Requests, unitTokens: l.Tokens, unitInputTokens: l.InputTokens, unitOutputTokens: l.OutputTokens,
	}
	least := map[string]vendorRemaining{}
	for _, said := range remainingIn(header, now) {
		limit := limits[said.unit]
		other, ok := least[limit]
		if limit != "" && (!ok || said.bindsMoreThan(other)) {
			least[limit] = said
		}
	}
	return least
}

func (v vendorRemaining) bindsMoreThan(other vendorRemaining) bool {
	if v.remaining != other.remaining {
		return v.remaining < other.remaining
	}
	return v.reset > other.reset
}

// pause returns for how long the key is paused if the limit takes no reports.
func (v vendorRemaining) pause() time.Duration {
	if v.remaining > 0 {
		return 0
	}
	return v.reset
}

// remainingReports reports to Sluice what a vendor says remains.
type remainingReports struct {
	mu    sync.Mutex
	sent  map[keyAndLimit]sentReport
	swept time.Time
}

type keyAndLimit struct{ key, limit string }

// sentReport says when the last report was sent, and when Sluice last rejected one.
type sentReport struct{ at, rejectedAt time.Time }

// report reports what an answer says, if that is less than Sluice believes: the quota of the approval with which the vendor
// was called. It returns for how long the key has to be paused, since nothing remains of a limit that takes no reports.
func (r *remainingReports) report(
	ctx context.Context, client *Client, key string, least map[string]vendorRemaining, quota []Quota,
) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, reportInterval)
	defer cancel()
	var pause time.Duration
	for limit, said := range least {
		if believed, ok := remainingOf(limit, quota); ok && said.remaining >= believed {
			continue
		}
		pause = max(pause, r.reportOne(ctx, client, keyAndLimit{key, limit}, said))
	}
	return pause
}

func (r *remainingReports) reportOne(
	ctx context.Context, client *Client, id keyAndLimit, said vendorRemaining,
) time.Duration {
	now := time.Now()
	isDue, isRejected := r.begin(id, now, said.pause() > 0)
	if !isDue {
		return 0
	}
	if isRejected {
		return said.pause()
	}
	options := ReportOptions{Reset: said.reset, Limit: id.limit}
	var rejected *RejectedError
	if errors.As(client.ReportRemaining(ctx, id.key, said.remaining, options), &rejected) {
		r.reject(id, now)
		return said.pause()
	}
	return 0
}

// begin notes a report, unless it comes too soon, and says whether the limit has rejected one lately. Then only a pause is
// to be noted.
func (r *remainingReports) begin(id keyAndLimit, now time.Time, pauses bool) (isDue, isRejected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.sent[id]
	isRejected = now.Sub(last.rejectedAt) < rejectedTime
	if now.Sub(last.at) < reportInterval || (isRejected && !pauses) {
		return false, isRejected
	}
	r.sweep(now)
	r.sent[id] = sentReport{at: now, rejectedAt: last.rejectedAt}
	return true, isRejected
}

func (r *remainingReports) reject(id keyAndLimit, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[id] = sentReport{at: r.sent[id].at, rejectedAt: now}
}

// sweep forgets reports that change nothing any more. The first one makes the map.
func (r *remainingReports) sweep(now time.Time) {
	if now.Sub(r.swept) < rejectedTime {
		return
	}
	r.swept = now
	left := map[keyAndLimit]sentReport{}
	for id, sent := range r.sent {
		if now.Sub(sent.at) < rejectedTime {
			left[id] = sent
		}
	}
	r.sent = left
}

// remainingOf returns what Sluice believes remains of a limit, if the approval says so. The own limit is the first one:
// its name may be the name of a rule, which a further limit may have as well.
func remainingOf(limit string, quota []Quota) (int64, bool) {
	for i, one := range quota {
		if (i == 0 && limit == OwnLimit) || (i > 0 && one.Name == limit) {
			return one.Remaining, true
		}
	}
	return 0, false
}
