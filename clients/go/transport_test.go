package sluice

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// get sends a request through a limited transport.
func get(t *testing.T, transport *Transport, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(testContext(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err == nil {
		t.Cleanup(func() { response.Body.Close() })
	}
	return response, err
}

// limitedBy returns a transport that asks for one key.
func limitedBy(client *Client, key string) *Transport {
	return &Transport{Client: client, Key: func(*http.Request) string { return key }}
}

// answersWith answers with a status and headers, given in pairs.
func answersWith(status int, pairs ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header().Set(pairs[i], pairs[i+1])
		}
		w.WriteHeader(status)
	}
}

func TestARequestIsSentOnceItIsApproved(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "")
	vendor := newStandIn(t, says(http.StatusOK, "OK"))
	id := approve(t, client, key, CheckOptions{})
	transport, end := limitedBy(client, key), make(chan error, 1)
	go func() {
		response, err := get(t, transport, vendor.url)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		end <- err
	}()
	until(t, "the wait", func() bool { return stateOf(t, key).NumWaiting == 1 })
	if sent := len(vendor.asked(http.MethodGet)); sent != 0 {
		t.Errorf("%d requests were sent before", sent)
	}
	if _, err := client.Release(testContext(t), key, id); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "the answer", end); err != nil {
		t.Fatal(err)
	}
	if used := stateOf(t, key).NumApprovedThisWindow; used != 1 {
		t.Errorf("%d count", used)
	}
}

// closeNoter is a body that notes that it is closed.
type closeNoter struct {
	io.Reader
	isClosed bool
}

func (b *closeNoter) Close() error { b.isClosed = true; return nil }

func TestADeniedRequestIsNotSent(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "")
	vendor := newStandIn(t, says(http.StatusOK, "OK"))
	approve(t, client, key, CheckOptions{})
	transport := limitedBy(client, key)
	transport.Options.MaxWait = NoWait
	body := &closeNoter{Reader: strings.NewReader("question")}
	request, err := http.NewRequestWithContext(testContext(t), http.MethodPost, vendor.url, body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&http.Client{Transport: transport}).Do(request)
	var denied *DeniedError
	if !errors.As(err, &denied) || denied.Key != key || !body.isClosed {
		t.Errorf("got %v, and the body is closed: %v", err, body.isClosed)
	}
	if sent := len(vendor.requests); sent != 0 {
		t.Errorf("%d requests were sent", sent)
	}
}

func TestARequestWithoutAKeyIsNotLimited(t *testing.T) {
	vendor := newStandIn(t, says(http.StatusOK, "OK"))
	client := newClient(t, Options{URLs: []string{refusingURL(t)}})
	if _, err := get(t, limitedBy(client, ""), vendor.url); err != nil {
		t.Error(err)
	}
	if _, err := get(t, &Transport{}, vendor.url); err == nil || !strings.Contains(err.Error(), "needs a Client and a Key") {
		t.Errorf("got %v without a client", err)
	}
}

func TestAnApprovalIsReleasedOnlyIfThereWasNoConnection(t *testing.T) {
	client := newClient(t, Options{})
	for url, used := range map[string]int{refusingURL(t): 0, newStandIn(t, loses).url: 1} {
		key := newKey(t, "")
		if _, err := get(t, limitedBy(client, key), url); err == nil {
			t.Fatal("there is an answer")
		}
		if got := stateOf(t, key).NumApprovedThisWindow; got != used {
			t.Errorf("%d count instead of %d", got, used)
		}
	}
}

func TestTheContextOfARequestEndsItsWait(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "")
	approve(t, client, key, CheckOptions{})
	ctx, cancel := context.WithCancel(testContext(t))
	transport, end := limitedBy(client, key), make(chan error, 1)
	transport.Options.OnProgress = func(Progress) { cancel() }
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, sluiceURL+"/healthz", nil)
		if err == nil {
			_, err = transport.RoundTrip(request)
		}
		end <- err
	}()
	if err := receive(t, "the end", end); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestIdleConnectionsOfTheBaseAreClosed(t *testing.T) {
	vendor := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	closed := make(chan struct{}, 1)
	vendor.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	vendor.Start()
	t.Cleanup(vendor.Close)
	transport := limitedBy(newClient(t, Options{}), newKey(t, "llm-"))
	transport.Base = &http.Transport{}
	if _, err := get(t, transport, vendor.URL); err != nil {
		t.Fatal(err)
	}
	(&http.Client{Transport: transport}).CloseIdleConnections()
	receive(t, "the end of the idle connection", closed)
	// A base without idle connections.
	transport.Base = http.NewFileTransport(http.Dir("."))
	transport.CloseIdleConnections()
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	if newTransport().Proxy != nil {
		t.Error("a proxy would be used")
	}
}

func TestRetryAfterPausesTheKey(t *testing.T) {
	client := newClient(t, Options{})
	date := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		isAsked bool
		allowed bool
	}{
		"of a 429":              {answersWith(429, "Retry-After", "60"), true, false},
		"of a 503, with a date": {answersWith(503, "Retry-After", date), true, false},
		"of a 200":              {answersWith(200, "Retry-After", "60"), true, true},
		"that is no time":       {answersWith(429, "Retry-After", "soon"), true, true},
		"unless not asked to":   {answersWith(429, "Retry-After", "60"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t, "llm-")
			transport := limitedBy(client, key)
			transport.PausesKey = c.isAsked
			if _, err := get(t, transport, newStandIn(t, c.answer).url); err != nil {
				t.Fatal(err)
			}
			peek, err := client.Peek(testContext(t), key, CheckOptions{})
			if err != nil || peek.Allowed != c.allowed {
				t.Errorf("got %+v and %v", peek, err)
			}
		})
	}
}

func TestRetryAfterDoesNotShortenALongerPause(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, "llm-"), testContext(t)
	transport := limitedBy(client, key)
	transport.PausesKey = true
	vendor := newStandIn(t, func(answer http.ResponseWriter, request *http.Request) {
		// Another answer asks for more while this one is on its way.
		if err := client.Pause(ctx, key, time.Hour, PauseOptions{}); err != nil {
			t.Error(err)
		}
		answersWith(429, "Retry-After", "1")(answer, request)
	})
	if _, err := get(t, transport, vendor.url); err != nil {
		t.Fatal(err)
	}
	peek, err := client.Peek(ctx, key, CheckOptions{})
	if err != nil || peek.Wait < 50*time.Minute {
		t.Errorf("got %+v and %v", peek, err)
	}
}

func TestLessThanSluiceBelievesIsReported(t *testing.T) {
	client := newClient(t, Options{})
	limits := ReportedLimits{Requests: "requests", Tokens: OwnLimit}
	for name, c := range map[string]struct {
		limits    ReportedLimits
		remaining [2]string
		want      [2]int64
	}{
		"to each limit": {limits, [2]string{"500", "50"}, [2]int64{500, 50}},
		// The approval of the request has left so much.
		"but not more": {limits, [2]string{"999", "99"}, [2]int64{999, 99}},
		"if asked to":  {ReportedLimits{}, [2]string{"500", "50"}, [2]int64{999, 99}},
	} {
		t.Run(name, func(t *testing.T) {
			vendor := newStandIn(t, answersWith(200,
				"x-ratelimit-remaining-tokens", c.remaining[0], "x-ratelimit-reset-tokens", "6m0s",
				"x-ratelimit-remaining-requests", c.remaining[1]))
			key := newKey(t, "llm-")
			transport := limitedBy(client, key)
			transport.ReportsRemaining = c.limits
			if _, err := get(t, transport, vendor.url); err != nil {
				t.Fatal(err)
			}
			peek, err := client.Peek(testContext(t), key, CheckOptions{})
			if err != nil || peek.Quota[0].Remaining != c.want[0] || peek.Quota[1].Remaining != c.want[1] {
				t.Errorf("got %+v and %v", peek, err)
			}
		})
	}
}

func TestALimitThatTakesNoReportsIsPausedIfNothingRemains(t *testing.T) {
	client := newClient(t, Options{})
	for remaining, allowed := range map[string]bool{"0": false, "7": true} {
		vendor := newStandIn(t, answersWith(200, "X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", "60"))
		key := newKey(t, "bucket-")
		transport := limitedBy(client, key)
		transport.ReportsRemaining.Requests = OwnLimit
		if _, err := get(t, transport, vendor.url); err != nil {
			t.Fatal(err)
		}
		if peek, err := client.Peek(testContext(t), key, CheckOptions{}); err != nil || peek.Allowed != allowed {
			t.Errorf("got %+v and %v if %s remain", peek, err, remaining)
		}
		if transport.reports.sent[keyAndLimit{key, OwnLimit, ""}].rejectedAt.IsZero() {
			t.Error("the limit would be asked again")
		}
	}
}

func TestPausesAndReportsAreOfTheGroupOfTheRequestIfToldSo(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, "tenants-"), testContext(t)
	vendor := newStandIn(t, answersWith(429, "Retry-After", "60", "X-RateLimit-Remaining", "5"))
	transport := limitedBy(client, key)
	transport.PausesGroup = true
	transport.ReportsRemaining = ReportedLimits{Requests: "tenant", PerGroup: true}
	// A report does not replace the one of another group.
	for _, group := range []string{"a", "b"} {
		transport.Options.Group = group
		if _, err := get(t, transport, vendor.url); err != nil {
			t.Fatal(err)
		}
	}
	for group, remaining := range map[string]int64{"a": 5, "b": 5, "c": 100} {
		if peek, err := client.Peek(ctx, key, CheckOptions{Group: group}); err != nil || peek.Allowed != (group == "c") {
			t.Errorf("got %+v and %v for the group %s", peek, err, group)
		}
		// While a group is paused, nothing remains for it.
		if err := client.Pause(ctx, key, 0, PauseOptions{Group: group}); err != nil {
			t.Fatal(err)
		}
		peek, err := client.Peek(ctx, key, CheckOptions{Group: group})
		if err != nil || peek.Quota[1].Remaining != remaining {
			t.Errorf("got %+v and %v for the group %s after its pause", peek, err, group)
		}
	}
}

func TestALimitThatTakesNoReportsOfAGroupHasTheGroupPaused(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "tenants-")
	vendor := newStandIn(t, answersWith(200, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"))
	transport := limitedBy(client, key)
	transport.Options.Group = "a"
	transport.ReportsRemaining = ReportedLimits{Requests: OwnLimit, PerGroup: true}
	if _, err := get(t, transport, vendor.url); err != nil {
		t.Fatal(err)
	}
	for group, allowed := range map[string]bool{"a": false, "b": true} {
		peek, err := client.Peek(testContext(t), key, CheckOptions{Group: group})
		if err != nil || peek.Allowed != allowed {
			t.Errorf("got %+v and %v for the group %s", peek, err, group)
		}
	}
}

func TestTheLeastOfALimitIsReported(t *testing.T) {
	header := headerOf(map[string]string{
		"RateLimit-Remaining": "7", "RateLimit-Reset": "1",
		"X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "2",
		"X-RateLimit-Remaining-Requests": "5", "X-RateLimit-Reset-Requests": "3",
		"X-RateLimit-Remaining-Tokens": "6", "X-RateLimit-Reset-Tokens": "4",
	})
	least := ReportedLimits{Requests: OwnLimit, Tokens: OwnLimit}.leastIn(header, time.Now())
	want := vendorRemaining{unitRequests, 5, 3 * time.Second}
	if len(least) != 1 || least[OwnLimit] != want {
		t.Errorf("got %+v", least)
	}
}

func TestReportsAreForgottenAfterAMinute(t *testing.T) {
	var reports remainingReports
	now, said := time.Now(), vendorRemaining{remaining: 5}
	for range 3 {
		reports.begin(keyAndLimit{newKey(t, ""), OwnLimit, ""}, now, said)
	}
	reports.begin(keyAndLimit{"a", OwnLimit, ""}, now.Add(rejectedTime), said)
	if left := len(reports.sent); left != 1 {
		t.Errorf("%d reports are known", left)
	}
}

func TestReportsOfALimitAreASecondApartButForZero(t *testing.T) {
	var reports remainingReports
	id, now := keyAndLimit{"a", OwnLimit, ""}, time.Now()
	for _, c := range []struct {
		after time.Duration
		said  vendorRemaining
		want  due
		// What is kept by then until the end of the second.
		least *vendorRemaining
	}{
		{0, vendorRemaining{remaining: 50}, doReport, nil},
		{400 * time.Millisecond, vendorRemaining{remaining: 4, reset: 5 * time.Second}, doNothing,
			&vendorRemaining{remaining: 4, reset: 4400 * time.Millisecond}},
		{500 * time.Millisecond, vendorRemaining{remaining: 7}, doNothing,
			&vendorRemaining{remaining: 4, reset: 4400 * time.Millisecond}},
		// It has reset by then.
		{500 * time.Millisecond, vendorRemaining{remaining: 1, reset: 500 * time.Millisecond}, doNothing,
			&vendorRemaining{remaining: 4, reset: 4400 * time.Millisecond}},
		{999 * time.Millisecond, vendorRemaining{remaining: 3}, doNothing, &vendorRemaining{remaining: 3}},
		{999 * time.Millisecond, vendorRemaining{remaining: 0}, doReport, nil},
		{1998 * time.Millisecond, vendorRemaining{remaining: 0}, doNothing, &vendorRemaining{remaining: 0}},
		{1999 * time.Millisecond, vendorRemaining{remaining: 9}, doReport, nil},
	} {
		last := reports.sent[id]
		if got, _ := reports.begin(id, now.Add(c.after), c.said); got != c.want {
			t.Errorf("after %v: %v is %v", c.after, c.said, got)
		}
		if got := reports.sent[id].least; !reflect.DeepEqual(got, c.least) {
			t.Errorf("after %v: %v is kept", c.after, got)
		}
		if last != nil && last != reports.sent[id] && last.least != nil {
			t.Errorf("after %v: %v would be reported as well", c.after, last.least)
		}
	}
}

func TestALimitThatRejectsAReportIsPausedForAMinute(t *testing.T) {
	var reports remainingReports
	id, rejectedAt := keyAndLimit{"a", OwnLimit, ""}, time.Now()
	some, none := vendorRemaining{remaining: 5}, vendorRemaining{reset: time.Second}
	reports.begin(id, rejectedAt, some)
	reports.reject(id, rejectedAt)
	for _, c := range []struct {
		after time.Duration
		said  vendorRemaining
		want  due
	}{
		{time.Millisecond, none, doPause},
		{999 * time.Millisecond, none, doNothing},
		{59 * time.Second, some, doNothing},
		{59 * time.Second, none, doPause},
		{61 * time.Second, some, doReport},
	} {
		got, keeper := reports.begin(id, rejectedAt.Add(c.after), c.said)
		if got != c.want || keeper != nil {
			t.Errorf("%v after a rejection: %v and %v", c.after, got, keeper)
		}
	}
}

func TestTheLeastOfASecondIsReportedAtItsEnd(t *testing.T) {
	client := newClient(t, Options{})
	key := newKey(t, "llm-")
	transport := limitedBy(client, key)
	transport.ReportsRemaining.Tokens = OwnLimit
	answered := func(remaining string) {
		t.Helper()
		vendor := newStandIn(t, answersWith(200, "x-ratelimit-remaining-tokens", remaining))
		if _, err := get(t, transport, vendor.url); err != nil {
			t.Fatal(err)
		}
	}
	answered("500")
	// The others come before the end of its second, also on a machine that stands still for a while.
	transport.reports.sent[keyAndLimit{key, OwnLimit, ""}].at = time.Now().Add(2 * time.Second)
	answered("300")
	answered("400")
	until(t, "the report of the least", func() bool {
		peek, err := client.Peek(testContext(t), key, CheckOptions{})
		return err == nil && peek.Quota[0].Remaining == 300
	})
}
