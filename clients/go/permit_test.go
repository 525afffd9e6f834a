package sluice

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"
)

const (
	// renewedHold does not lapse before a renewal on a machine that stands still for a while.
	renewedHold = 3 * time.Second
	// renewedOnce is a hold of which no second renewal is due on a machine that stands still for a while.
	renewedOnce = 7 * time.Second
)

// newProxy passes requests on to the Sluice of the tests, and says so for each method.
func newProxy(t *testing.T, method string) (*standIn, <-chan struct{}) {
	t.Helper()
	target, err := url.Parse(sluiceURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy, answered := httputil.NewSingleHostReverseProxy(target), make(chan struct{}, 100)
	return newStandIn(t, func(w http.ResponseWriter, request *http.Request) {
		proxy.ServeHTTP(w, request)
		if request.Method == method {
			answered <- struct{}{}
		}
	}), answered
}

func TestAPermitOutlivesItsHoldUntilItsRelease(t *testing.T) {
	proxy, renewed := newProxy(t, http.MethodPut)
	client, key, ctx := newClient(t, Options{URLs: []string{proxy.url}}), newKey(t, ""), testContext(t)
	options := WaitOptions{CheckOptions: CheckOptions{Hold: renewedHold}, MaxWait: NoWait}
	permit, err := client.Permit(ctx, key, options)
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < renewedHold; {
		receive(t, "a renewal", renewed)
	}
	_, err = client.Permit(ctx, key, options)
	var denied *DeniedError
	if !errors.Is(err, ErrDenied) || !errors.As(err, &denied) || denied.Key != key || denied.Status != 429 {
		t.Fatalf("got %v while the permit is held", err)
	}
	if err := permit.Context().Err(); err != nil {
		t.Errorf("the work has ended: %v", err)
	}
	permit.Release()
	permit.Release()
	if cause := context.Cause(permit.Context()); !errors.Is(cause, context.Canceled) {
		t.Errorf("the work ended with %v", cause)
	}
	if released := len(proxy.asked(http.MethodDelete)); released != 1 {
		t.Errorf("it was released %d times", released)
	}
	approve(t, client, key, CheckOptions{})
}

func TestALostPermitEndsItsWork(t *testing.T) {
	proxy, _ := newProxy(t, "")
	client, key, ctx := newClient(t, Options{URLs: []string{proxy.url}}), newKey(t, ""), testContext(t)
	permit, err := client.Permit(ctx, key, WaitOptions{CheckOptions: CheckOptions{Hold: renewedHold}})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := newClient(t, Options{}).Release(ctx, key, permit.RequestID); err != nil || !found {
		t.Fatalf("got %v and %v", found, err)
	}
	receive(t, "the end of the work", permit.Context().Done())
	cause := context.Cause(permit.Context())
	var lost *PermitLostError
	if !errors.Is(cause, ErrPermitLost) || !errors.As(cause, &lost) || lost.RequestID != permit.RequestID {
		t.Errorf("the work ended with %v", cause)
	}
	permit.Release()
	if released := len(proxy.asked(http.MethodDelete)); released != 0 {
		t.Errorf("it was released %d times", released)
	}
}

func TestAPermitIsLostOnceItsHoldHasLapsedInAnOutage(t *testing.T) {
	sluice := newStandIn(t, says(http.StatusOK, approvedBody), fails(http.StatusServiceUnavailable, "STORE_UNAVAILABLE"))
	client := newClient(t, Options{URLs: []string{sluice.url}})
	// Three renewals have time in it, also on a machine that stands still for a while.
	const hold = 5 * time.Second
	permit, err := client.Permit(testContext(t), "a", WaitOptions{CheckOptions: CheckOptions{Hold: hold}})
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Release()
	receive(t, "the end of the work", permit.Context().Done())
	cause := context.Cause(permit.Context())
	var failure *UnavailableError
	if !errors.Is(cause, ErrPermitLost) || !errors.As(cause, &failure) || failure.Code != "STORE_UNAVAILABLE" {
		t.Errorf("the work ended with %v", cause)
	}
	if renewals := len(sluice.asked(http.MethodPut)); renewals < 3 {
		t.Errorf("it was renewed only %d times", renewals)
	}
}

func TestAPermitThatHasWaitedIsRenewedBeforeItsWork(t *testing.T) {
	for name, c := range map[string]struct {
		renewal http.HandlerFunc
		want    error
	}{
		"which is held": {says(http.StatusOK, approvedBody), nil},
		"which is lost": {fails(http.StatusNotFound, codeRequestNotFound), ErrPermitLost},
	} {
		t.Run(name, func(t *testing.T) {
			// So late that a renewal is due.
			late := func(w http.ResponseWriter, request *http.Request) {
				time.Sleep(renewedOnce / renewalsPerHold)
				says(http.StatusOK, approvedBody)(w, request)
			}
			sluice := newStandIn(t, late, c.renewal)
			client := newClient(t, Options{URLs: []string{sluice.url}})
			permit, err := client.Permit(testContext(t), "a", WaitOptions{CheckOptions: CheckOptions{Hold: renewedOnce}})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if renewals := len(sluice.asked(http.MethodPut)); renewals != 1 {
				t.Errorf("it was renewed %d times", renewals)
			}
			if permit != nil {
				permit.Release()
			}
		})
	}
}

func TestAPermitWhoseContextEndsInItsFirstRenewalIsReleasedInTheBackground(t *testing.T) {
	renewing, answers := make(chan struct{}), make(chan struct{})
	sluice := newStandIn(t, func(w http.ResponseWriter, request *http.Request) {
		switch request.Method {
		case http.MethodPost:
			// So late that a renewal is due.
			time.Sleep(renewedOnce / renewalsPerHold)
		case http.MethodPut:
			close(renewing)
			<-request.Context().Done()
			return
		case http.MethodDelete:
			<-answers
		}
		says(http.StatusOK, approvedBody)(w, request)
	})
	client := newClient(t, Options{URLs: []string{sluice.url}, Timeout: 2 * longest})
	defer close(answers)
	ctx, cancel := context.WithCancel(testContext(t))
	end := make(chan error, 1)
	go func() {
		_, err := client.Permit(ctx, "a", WaitOptions{CheckOptions: CheckOptions{Hold: renewedOnce}})
		end <- err
	}()
	receive(t, "the renewal", renewing)
	cancel()
	until(t, "the release", func() bool { return len(sluice.asked(http.MethodDelete)) == 1 })
	err := receive(t, "the end of the call, whose release is not answered yet", end)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAPermitThatIsNotHeldIsNotRenewed(t *testing.T) {
	uncounted := func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("X-Sluice-Shadow", "denied")
		says(http.StatusOK, approvedBody)(w, request)
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		hold   time.Duration
		sent   string
	}{
		"without a hold":              {says(http.StatusOK, approvedBody), NoHold, ""},
		"since nothing counts it":     {uncounted, time.Nanosecond, "1"},
		"before it is due by default": {says(http.StatusOK, approvedBody), 0, "30000"},
	} {
		t.Run(name, func(t *testing.T) {
			sluice := newStandIn(t, c.answer)
			client := newClient(t, Options{URLs: []string{sluice.url}})
			permit, err := client.Permit(testContext(t), "a", WaitOptions{CheckOptions: CheckOptions{Hold: c.hold}})
			if err != nil {
				t.Fatal(err)
			}
			permit.Release()
			if renewals := len(sluice.asked(http.MethodPut)); renewals != 0 {
				t.Errorf("it was renewed %d times", renewals)
			}
			if hold := sluice.asked(http.MethodPost)[0].URL.Query().Get("holdMillis"); hold != c.sent {
				t.Errorf("the hold is %q", hold)
			}
		})
	}
}

func TestAPermitCountsUntilItsReleaseAlthoughItsContextHasEnded(t *testing.T) {
	proxy, renewed := newProxy(t, http.MethodPut)
	client, key := newClient(t, Options{URLs: []string{proxy.url}}), newKey(t, "")
	ctx, cancel := context.WithCancel(testContext(t))
	permit, err := client.Permit(ctx, key, WaitOptions{CheckOptions: CheckOptions{Hold: renewedHold}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	receive(t, "a renewal", renewed)
	if cause := context.Cause(permit.Context()); !errors.Is(cause, context.Canceled) {
		t.Errorf("the work ended with %v", cause)
	}
	if used := stateOf(t, key).NumApprovedThisWindow; used != 1 {
		t.Errorf("%d count before the release", used)
	}
	permit.Release()
	if used := stateOf(t, key).NumApprovedThisWindow; used != 0 {
		t.Errorf("%d count after the release", used)
	}
}
