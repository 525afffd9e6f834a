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

func (a asked) tell(decision sluice.Decision) error {
	switch {
	case a.values.has("json"):
		return printJSON(struct {
			Approved          bool    `json:"approved"`
			Key               string  `json:"key"`
			RequestID         string  `json:"requestId,omitempty"`
			Uncounted         bool    `json:"uncounted,omitempty"`
			RetryAfterSeconds int64   `json:"retryAfterSeconds,omitempty"`
			Limit             string  `json:"limit,omitempty"`
			Quota             []quota `json:"quota"`
		}{decision.Approved, a.key, decision.RequestID, decision.Uncounted, seconds(decision.RetryAfter), decision.Limit,
			quotasOf(decision.Quota)})
	case decision.Approved:
		a.messages.approved(decision.RequestID)
		return print(decision.RequestID)
	}
	a.messages.failed(&sluice.DeniedError{Key: a.key, RetryAfter: decision.RetryAfter, Limit: decision.Limit})
	return nil
}

// quota is what is left of a limit, with the names of all clients' JSON.
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
	result := struct {
		Released  bool   `json:"released"`
		Key       string `json:"key"`
		RequestID string `json:"requestId"`
	}{released, a.key, id}
	return a.found(released, result, "released", "no such approval")
}

// found says whether there was what a command was to end. It returns the exit code.
func (a asked) found(isFound bool, result any, ended, missing string) (int, error) {
	code := 0
	if !isFound {
		code = exitNotFound
	}
	switch {
	case a.values.has("json"):
		return code, printJSON(result)
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
		by := ""
		if peeked.Limit != "" {
			by = " by the limit " + peeked.Limit
		}
		verdict = fmt.Sprintf("would be denied%s, a turn would come in at least %s", by, shownTime(peeked.Wait))
	}
	if a.values.has("json") {
		return code, printJSON(struct {
			Allowed    bool    `json:"allowed"`
			Key        string  `json:"key"`
			WaitMillis int64   `json:"waitMillis"`
			Limit      string  `json:"limit,omitempty"`
			Quota      []quota `json:"quota"`
		}{peeked.Allowed, a.key, peeked.Wait.Milliseconds(), peeked.Limit, quotasOf(peeked.Quota)})
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
			return 0, printJSON(struct {
				Key         string `json:"key"`
				Group       string `json:"group,omitempty"`
				PauseMillis int64  `json:"pauseMillis"`
			}{a.key, group, millis})
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
		return 0, printJSON(struct {
			Key     string   `json:"key"`
			Holders []holder `json:"holders"`
		}{a.key, list})
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
	result := struct {
		Ended  bool   `json:"ended"`
		Key    string `json:"key"`
		Handle string `json:"handle"`
	}{isFound, a.key, handle}
	return a.found(isFound, result, "hold ended", "no such hold")
}

// pathOf is a name as a part of a path. A name of dots would be part of the path.
func pathOf(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }
