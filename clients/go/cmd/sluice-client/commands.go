package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	sluice "sluice-client"
)

func check(a asked) (int, error) {
	var decision sluice.Decision
	var err error
	if a.values.has("wait") || a.values.has("max-wait") {
		decision, err = a.client.Wait(a.signals.ctx, a.key, a.waitOptions())
	} else {
		decision, err = a.client.Check(a.signals.ctx, a.key, a.checkOptions())
	}
	if err != nil {
		return 0, err
	}
	if err := a.tell(decision); err != nil {
		if decision.Approved {
			// Nobody knows the id.
			_, _ = a.client.Release(context.Background(), a.key, decision.RequestID)
		}
		return 0, err
	}
	if decision.Approved {
		return 0, nil
	}
	return exitDenied, nil
}

// result is what the commands about one key print in JSON, with the names of all clients.
type result struct {
	Approved          *bool  `json:"approved,omitempty"`
	Released          *bool  `json:"released,omitempty"`
	Ended             *bool  `json:"ended,omitempty"`
	Allowed           *bool  `json:"allowed,omitempty"`
	Key               string `json:"key"`
	RequestID         string `json:"requestId,omitempty"`
	Handle            string `json:"handle,omitempty"`
	Uncounted         bool   `json:"uncounted,omitempty"`
	RetryAfterSeconds int64  `json:"retryAfterSeconds,omitempty"`
	WaitMillis        *int64 `json:"waitMillis,omitempty"`
	Limit             string `json:"limit,omitempty"`
	Group             string `json:"group,omitempty"`
	PauseMillis       *int64 `json:"pauseMillis,omitempty"`
	Quota             any    `json:"quota,omitempty"`
	Holders           any    `json:"holders,omitempty"`
}

func (a asked) tell(d sluice.Decision) error {
	switch {
	case a.values.has("json"):
		return printJSON(result{Approved: &d.Approved, Key: a.key, RequestID: d.RequestID, Uncounted: d.Uncounted,
			RetryAfterSeconds: seconds(d.RetryAfter), Limit: d.Limit, Quota: quotasOf(d.Quota)})
	case d.Approved:
		a.messages.approved(d.RequestID, "")
		return print(d.RequestID)
	}
	a.messages.failed(&sluice.DeniedError{Key: a.key, RetryAfter: d.RetryAfter, Limit: d.Limit})
	return nil
}

// quota is what is left of a limit.
type quota struct {
	Name          string `json:"name"`
	Limit         int64  `json:"limit"`
	Remaining     int64  `json:"remaining"`
	ResetSeconds  int64  `json:"resetSeconds"`
	WindowSeconds int64  `json:"windowSeconds,omitempty"`
}

func quotasOf(list []sluice.Quota) []quota {
	shown := make([]quota, len(list))
	for i, one := range list {
		shown[i] = quota{one.Name, one.Limit, one.Remaining, seconds(one.Reset), seconds(one.Window)}
	}
	return shown
}

func release(a asked) (int, error) {
	id := a.operands[1]
	released, err := a.client.Release(a.signals.ctx, a.key, id)
	if err != nil {
		return 0, err
	}
	shown := result{Released: &released, Key: a.key, RequestID: id}
	return a.found(released, shown, "released", "no such approval")
}

// found says whether there was what a command was to end. It returns the exit code.
func (a asked) found(isFound bool, shown result, ended, missing string) (int, error) {
	code := 0
	if !isFound {
		code = exitNotFound
	}
	switch {
	case a.values.has("json"):
		return code, printJSON(shown)
	case isFound:
		return code, print(a.key + ": " + ended)
	}
	writeLine(program + ": " + a.key + ": " + missing)
	return code, nil
}

func peek(a asked) (int, error) {
	peeked, err := a.client.Peek(a.signals.ctx, a.key, a.checkOptions())
	if err != nil {
		return 0, err
	}
	code := 0
	verdict := "would be approved"
	if !peeked.Allowed {
		code = exitDenied
		verdict = fmt.Sprintf("would be denied%s, a turn would come in at least %s",
			limitedBy(peeked.Limit), shownTime(peeked.Wait))
	}
	if a.values.has("json") {
		wait := peeked.Wait.Milliseconds()
		return code, printJSON(result{
			Allowed: &peeked.Allowed, Key: a.key, WaitMillis: &wait, Limit: peeked.Limit, Quota: quotasOf(peeked.Quota)})
	}
	lines := []string{a.key + ": " + verdict}
	for _, q := range peeked.Quota {
		lines = append(lines,
			fmt.Sprintf("  %s: %d of %d remain, reset in %s", q.Name, q.Remaining, q.Limit, shownTime(q.Reset)))
	}
	return code, print(lines...)
}

func pause(given invocation) (int, error) {
	isEnd := given.values.has("end")
	if isEnd == (len(given.operands) > 1) {
		return 0, wrong("pause needs DURATION or --end")
	}
	var millis int64
	if !isEnd {
		var err error
		if millis, err = parseDuration("DURATION", given.operands[1]); err != nil {
			return 0, err
		}
	}
	return asksWith(func(a asked) (int, error) {
		group := a.values.text("group")
		options := sluice.PauseOptions{Group: group}
		if err := a.client.Pause(a.signals.ctx, a.key, durationOf(millis), options); err != nil {
			return 0, err
		}
		if a.values.has("json") {
			return 0, printJSON(result{Key: a.key, Group: group, PauseMillis: &millis})
		}
		paused, change := a.key, "pause ended"
		if group != "" {
			paused += ", group " + group
		}
		if millis > 0 {
			change = "paused for " + a.operands[1]
		}
		return 0, print(paused + ": " + change)
	})(given)
}

// holder is who holds an approval.
type holder struct {
	Handle string `json:"handle"`
	// Holder and HeldMillis are left out if the check has named nobody.
	Holder      string   `json:"holder,omitempty"`
	Hits        float64  `json:"hits"`
	HeldMillis  *float64 `json:"heldMillis,omitempty"`
	LapseMillis float64  `json:"lapseMillis"`
}

func holders(a asked) (int, error) {
	status, body, err := a.request(a.signals.ctx, http.MethodGet, "/debug/"+pathOf(a.key))
	if err != nil {
		return 0, err
	}
	if status != http.StatusOK {
		return 0, rejected(status, body, "the holders may not be read")
	}
	list := []holder{}
	rows := [][]string{{"HANDLE", "HOLDER", "HITS", "HELD", "LAPSES IN"}}
	if all := body.field("Holders"); all.value != nil {
		for _, one := range all.list() {
			who := holder{one.field("Handle").text(), "", one.field("Hits").number(), nil, one.field("LapseMillis").number()}
			name, held := "-", "-"
			if named := one.field("Holder"); named.value != nil {
				since := one.field("HeldMillis").number()
				who.Holder, who.HeldMillis = named.text(), &since
				name, held = printable(who.Holder), shownMillis(since)
			}
			list = append(list, who)
			row := []string{printable(who.Handle), name, fmt.Sprintf("%.0f", who.Hits), held, shownMillis(who.LapseMillis)}
			rows = append(rows, row)
		}
	}
	switch err := body.err(); {
	case err != nil:
		return 0, err
	case a.values.has("json"):
		return 0, printJSON(result{Key: a.key, Holders: list})
	case len(list) == 0:
		return 0, print(a.key + ": nobody holds an approval")
	}
	return 0, print(aligned(rows, 2)...)
}

func shownMillis(millis float64) string { return shownTime(durationOf(int64(millis))) }

func endHold(a asked) (int, error) {
	handle := a.operands[1]
	path := "/rate/" + pathOf(a.key) + "/holders/" + pathOf(handle)
	status, body, err := a.request(a.signals.ctx, http.MethodDelete, path)
	if err != nil {
		return 0, err
	}
	isFound := status == http.StatusOK
	if code, _ := body.field("code").value.(string); !isFound && code != "HOLDER_NOT_FOUND" {
		return 0, rejected(status, body, "the hold may not be ended")
	}
	return a.found(isFound, result{Ended: &isFound, Key: a.key, Handle: handle}, "hold ended", "no such hold")
}

// pathOf is a name as a part of a path. A name of dots would be part of the path.
func pathOf(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }
