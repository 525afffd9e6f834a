package sluice

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestChecksAreApprovedUpToTheMaximum(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, ""), testContext(t)
	first, err := client.Check(ctx, key, CheckOptions{})
	if err != nil || !first.Approved || first.RequestID == "" || first.Uncounted {
		t.Fatalf("got %+v and %v", first, err)
	}
	second, err := client.Check(ctx, key, CheckOptions{})
	if err != nil || second.Approved || second.RetryAfter < time.Minute {
		t.Fatalf("got %+v and %v", second, err)
	}
	if released, err := client.Release(ctx, key, first.RequestID); err != nil || !released {
		t.Fatalf("got %v and %v", released, err)
	}
	if released, err := client.Release(ctx, key, first.RequestID); err != nil || released {
		t.Fatalf("got %v and %v for a repeated release", released, err)
	}
	approve(t, client, key, CheckOptions{})
}

func TestADecisionHasItsQuota(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "llm-")
	decision, err := client.Check(testContext(t), key, CheckOptions{Hits: 3})
	if err != nil || len(decision.Quota) != 2 {
		t.Fatalf("got %+v and %v", decision, err)
	}
	own, further := decision.Quota[0], decision.Quota[1]
	if own.Limit != 1000 || own.Remaining != 997 || own.Window != time.Hour || own.Reset <= 0 {
		t.Errorf("the own limit has %+v", own)
	}
	if further.Name != "requests" || further.Limit != 100 || further.Remaining != 99 {
		t.Errorf("the further limit has %+v", further)
	}
}

func TestAnApprovalThatNothingCountsSaysSo(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "shadow-")
	approve(t, client, key, CheckOptions{})
	inOutage := func(policy string) *Client {
		return newClient(t, Options{URLs: []string{newStandIn(t, func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("X-Sluice-Outage-Policy", policy)
			says(http.StatusOK, approvedBody)(w, request)
		}).url}})
	}
	for name, c := range map[string]struct {
		client    *Client
		uncounted bool
	}{
		"a rule in shadow mode":   {client, true},
		"the outage policy allow": {inOutage("allow"), true},
		"the outage policy local": {inOutage("local"), false},
	} {
		decision, err := c.client.Check(testContext(t), key, CheckOptions{})
		if err != nil || !decision.Approved || decision.Uncounted != c.uncounted {
			t.Errorf("got %+v and %v by %s", decision, err, name)
		}
	}
}

func TestTheOptionsOfACheckAreSent(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, "lanes-"), testContext(t)
	approve(t, client, key, CheckOptions{
		Hits: 2, MaxRequests: 3, MaxRequestsInQueue: NoQueue, Window: 2 * time.Hour, Lane: "interactive",
	})
	decision, err := client.Wait(ctx, key, WaitOptions{CheckOptions: CheckOptions{Hits: 2, Lane: "batch"}})
	if err != nil || decision.Approved || decision.Quota[0].Limit != 3 || decision.Quota[0].Remaining != 1 {
		t.Fatalf("got %+v and %v instead of a denial, since there is no queue", decision, err)
	}
	_, err = client.Check(ctx, key, CheckOptions{Group: "tenant"})
	var rejected *RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(rejected.Message, "group") {
		t.Fatalf("got %v", err)
	}
}

func TestAPeekCountsNothing(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, ""), testContext(t)
	for range 2 {
		if peek, err := client.Peek(ctx, key, CheckOptions{}); err != nil || !peek.Allowed || peek.Wait != 0 {
			t.Fatalf("got %+v and %v", peek, err)
		}
	}
	approve(t, client, key, CheckOptions{})
	if peek, err := client.Peek(ctx, key, CheckOptions{}); err != nil || peek.Allowed || peek.Wait == 0 {
		t.Fatalf("got %+v and %v", peek, err)
	}
}

func TestAnApprovalIsCorrected(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, "llm-"), testContext(t)
	id := approve(t, client, key, CheckOptions{Hits: 10})
	if found, err := client.Correct(ctx, key, id, 4); err != nil || !found {
		t.Fatalf("got %v and %v", found, err)
	}
	if used := stateOf(t, key).NumApprovedThisWindow; used != 4 {
		t.Errorf("%d hits count", used)
	}
	if _, err := client.Release(ctx, key, id); err != nil {
		t.Fatal(err)
	}
	if found, err := client.Correct(ctx, key, id, 4); err != nil || found {
		t.Fatalf("got %v and %v after the release", found, err)
	}
}

func TestOnlyAHeldApprovalIsRenewed(t *testing.T) {
	client, ctx := newClient(t, Options{}), testContext(t)
	for hold, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		key := newKey(t, "")
		id := approve(t, client, key, CheckOptions{Hold: hold})
		if found, err := client.Renew(ctx, key, id, 0); err != nil || found != want {
			t.Errorf("got %v and %v with a hold of %v", found, err, hold)
		}
	}
}

func TestAPauseDeniesUntilItEnds(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, ""), testContext(t)
	if err := client.Pause(ctx, key, time.Minute, PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if decision, err := client.Check(ctx, key, CheckOptions{}); err != nil || decision.Approved {
		t.Fatalf("got %+v and %v while the key is paused", decision, err)
	}
	if err := client.Pause(ctx, key, 0, PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	approve(t, client, key, CheckOptions{})
}

func TestAReportLeavesNoMoreThanItSays(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, "llm-"), testContext(t)
	if err := client.ReportRemaining(ctx, key, 20, ReportOptions{Reset: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := client.ReportRemaining(ctx, key, 5, ReportOptions{Limit: "requests"}); err != nil {
		t.Fatal(err)
	}
	peek, err := client.Peek(ctx, key, CheckOptions{})
	if err != nil || peek.Quota[0].Remaining != 20 || peek.Quota[1].Remaining != 5 {
		t.Fatalf("got %+v and %v", peek, err)
	}
	if err := client.ReportRemaining(ctx, key, 0, ReportOptions{Limit: "requests"}); err != nil {
		t.Fatal(err)
	}
	if decision, err := client.Check(ctx, key, CheckOptions{}); err != nil || decision.Limit != "requests" {
		t.Fatalf("got %+v and %v instead of a denial that names the limit", decision, err)
	}
	var rejected *RejectedError
	err = client.ReportRemaining(ctx, newKey(t, "bucket-"), 5, ReportOptions{})
	if !errors.As(err, &rejected) || rejected.Status != http.StatusBadRequest {
		t.Fatalf("got %v for a token bucket", err)
	}
}

func TestAnyTextIsAKey(t *testing.T) {
	client := newClient(t, Options{})
	for _, name := range []string{"a/b c?d=e#f%g;h", "ö.", "..", "."} {
		key := name + newKey(t, "")
		id := approve(t, client, key, CheckOptions{})
		if stateOf(t, key).NumApprovedThisWindow != 1 {
			t.Errorf("%q was another key", key)
		}
		if found, err := client.Release(testContext(t), key, id); err != nil || !found {
			t.Errorf("got %v and %v for %q", found, err, key)
		}
	}
	// A proxy would take these for a path that goes up.
	if path := (call{names: []string{".."}}).path(); path != "/rate/%2E%2E" {
		t.Errorf("the path is %s", path)
	}
}

func TestARejectedCheckSaysWhy(t *testing.T) {
	_, err := newClient(t, Options{}).Check(testContext(t), newKey(t, ""), CheckOptions{Hits: 2})
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.Status != http.StatusBadRequest || rejected.Code != "TOO_MANY_HITS" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "hits must be at most 1") {
		t.Errorf("the error says %q", err)
	}
}

func TestHeldApprovalsNameTheirHolder(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]Options{
		host + ":" + strconv.Itoa(os.Getpid()): {},
		"nightly export":                       {Holder: "nightly export"},
		"":                                     {Anonymous: true},
	} {
		key := newKey(t, "")
		approve(t, newClient(t, options), key, CheckOptions{Hold: time.Minute})
		if holders := stateOf(t, key).Holders; len(holders) != 1 || holders[0].Holder != want {
			t.Errorf("the holders are %v instead of %q", holders, want)
		}
	}
}

func TestTheTokenIsSent(t *testing.T) {
	noToken := errors.New("vault sealed")
	source := func(token string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return token, err }
	}
	for want, options := range map[string]Options{
		"":           {},
		"Bearer one": {Token: "one"},
		"Bearer two": {TokenSource: source("two", nil)},
	} {
		sluice := newStandIn(t, says(http.StatusOK, approvedBody))
		options.URLs = []string{sluice.url}
		approve(t, newClient(t, options), "a", CheckOptions{})
		if got := sluice.requests[0].Header.Get("Authorization"); got != want {
			t.Errorf("got %q instead of %q", got, want)
		}
	}
	client := newClient(t, Options{TokenSource: source("", noToken)})
	if _, err := client.Check(testContext(t), "a", CheckOptions{}); !errors.Is(err, noToken) {
		t.Errorf("got %v without a token", err)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	urls := []string{"http://localhost:8080"}
	source := func(context.Context) (string, error) { return "", nil }
	for want, options := range map[string]Options{
		"URLs must have an address":   {},
		`not "localhost:8080"`:        {URLs: []string{"localhost:8080"}},
		`not "http://a?b=c"`:          {URLs: []string{"http://a?b=c"}},
		"set Token or TokenSource":    {URLs: urls, Token: "a", TokenSource: source},
		"set Holder or Anonymous":     {URLs: urls, Holder: "a", Anonymous: true},
		"Holder must be at most 64":   {URLs: urls, Holder: strings.Repeat("a", 65)},
		"Timeout and LongPoll must n": {URLs: urls, Timeout: -1},
	} {
		if _, err := New(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v instead of %q", err, want)
		}
	}
}
