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
	// How often what remains of a limit is reported at most, but for 0. The reports of an answer also take no longer.
	reportInterval = time.Second
	// How long a limit is not asked again that has rejected a report. Its rule may change.
	rejectedTime = time.Minute
)

// ReportedLimits names the limit of the key for each number that a vendor says, such as [OwnLimit]. Numbers without a
// limit are not reported.
//
// A report is sent if less remains than Sluice believes, and takes one second at most. A key and limit gets one report a
// second: the first value of the second, or the least at its end; 0 is reported at once. If Sluice rejects it, for example since the limit is not a fixed window, the limit gets no report for a
// minute, and the key is paused until the vendor's reset if nothing remains. A report that fails is ignored.
type ReportedLimits struct {
	Requests     string
	Tokens       string
	InputTokens  string
	OutputTokens string
	// PerGroup says that each group has these limits to itself: the reports are about the group of the request, and so
	// are pauses in their place.
	PerGroup bool
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
	sent  map[keyAndLimit]*sentReport
	swept time.Time
}

// keyAndLimit has a group if each group has the limit to itself.
type keyAndLimit struct{ key, limit, group string }

// sentReport is the last report of a limit.
type sentReport struct {
	at        time.Time
	remaining int64
	// When Sluice last rejected a report.
	rejectedAt time.Time
	// The least that was said since, with its reset as of the end of the second.
	least *vendorRemaining
}

// report reports what an answer says, if that is less than Sluice believes: the quota of the approval with which the vendor
// was called. It returns for how long the key, or the group, has to be paused, since nothing remains of a limit that takes no
// reports.
func (r *remainingReports) report(
	ctx context.Context, client *Client, key, group string, least map[string]vendorRemaining, quota []Quota,
) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, reportInterval)
	defer cancel()
	var pause time.Duration
	for limit, said := range least {
		if believed, ok := remainingOf(limit, quota); ok && said.remaining >= believed {
			continue
		}
		pause = max(pause, r.reportOne(ctx, client, keyAndLimit{key, limit, group}, said))
	}
	return pause
}

func (r *remainingReports) reportOne(
	ctx context.Context, client *Client, id keyAndLimit, said vendorRemaining,
) time.Duration {
	now := time.Now()
	what, keeper := r.begin(id, now, said)
	if keeper != nil {
		time.AfterFunc(keeper.at.Add(reportInterval).Sub(now), func() { r.reportLeast(client, id, keeper) })
	}
	switch what {
	case doNothing:
		return 0
	case doPause:
		return said.pause()
	}
	options := ReportOptions{Reset: said.reset, Limit: id.limit, Group: id.group}
	var rejected *RejectedError
	if errors.As(client.ReportRemaining(ctx, id.key, said.remaining, options), &rejected) {
		r.reject(id, now)
		return said.pause()
	}
	return 0
}

// due says what is to be done about a number of a vendor.
type due int

const (
	doNothing due = iota
	doReport
	// The limit has rejected a report lately, and nothing remains of it.
	doPause
)

// begin notes a report or a pause if it is due: 0 at once, and anything else a second after the last report. What comes
// too soon is kept if it is the least of the second. The first that is kept has its keeper returned.
func (r *remainingReports) begin(id keyAndLimit, now time.Time, said vendorRemaining) (what due, keeper *sentReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.sent[id]
	if last == nil {
		last = &sentReport{remaining: -1}
	}
	isRejected := now.Sub(last.rejectedAt) < rejectedTime
	isNews := said.remaining == 0 && last.remaining != 0
	if left := last.at.Add(reportInterval).Sub(now); left > 0 && !isNews {
		if !isRejected && last.keep(said, left) {
			return doNothing, last
		}
		return doNothing, nil
	}
	if isRejected && said.pause() == 0 {
		return doNothing, nil
	}
	last.least = nil
	r.sweep(now)
	r.sent[id] = &sentReport{at: now, remaining: said.remaining, rejectedAt: last.rejectedAt}
	if isRejected {
		return doPause, nil
	}
	return doReport, nil
}

// keep keeps the least of what is said in a second, of which so much is left. It returns whether it is the first.
func (s *sentReport) keep(said vendorRemaining, left time.Duration) bool {
	if said.reset > 0 {
		// A millisecond is the shortest time that can be reported.
		said.reset = (said.reset - left).Truncate(time.Millisecond)
		if said.reset <= 0 {
			return false
		}
	}
	isFirst := s.least == nil
	if isFirst || said.bindsMoreThan(*s.least) {
		s.least = &said
	}
	return isFirst
}

// reportLeast reports what was kept until the end of a second, unless the client is closed.
func (r *remainingReports) reportLeast(client *Client, id keyAndLimit, keeper *sentReport) {
	r.mu.Lock()
	least := keeper.least
	keeper.least = nil
	r.mu.Unlock()
	if least == nil {
		return
	}
	ctx, cancel := context.WithTimeout(client.life, reportInterval)
	defer cancel()
	r.reportOne(ctx, client, id, *least)
}

func (r *remainingReports) reject(id keyAndLimit, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.sent[id]; last != nil {
		last.rejectedAt = now
	}
}

// sweep forgets reports that change nothing any more. The first one makes the map.
func (r *remainingReports) sweep(now time.Time) {
	if now.Sub(r.swept) < rejectedTime {
		return
	}
	r.swept = now
	left := map[keyAndLimit]*sentReport{}
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
